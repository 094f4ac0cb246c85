import { readdirSync, readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { askStore } from '../../src/store/ask-store.ts'
import type { StoreWarning } from '../../src/store/redis/inspect.js'
import { functionLibraryCode } from '../../src/store/redis/script-runner.js'
import { directRedisStore } from '../support/direct-store.ts'
import { type RedisCluster, startCluster } from '../support/redis-cluster.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { openConnection, sendCommand } from '../support/resp.ts'
import { all, BUCKET, BUCKETS, COUNTER, check, LOG } from './questions.ts'
import { clusterClient, LIBRARIES, type MakeClient, MODES, singleClient } from './topologies.ts'

const GUIDE = new URL('../../../../docs/guide/redis.md', import.meta.url)
const LUA = new URL('../../lua/', import.meta.url)
const USER = { username: 'headgate', password: 'PASSWORD' }

/** Returns the line of the guide, as an operator would paste it. */
function publishedLine(): string[] {
  const line = readFileSync(GUIDE, 'utf8')
    .split('\n')
    .find(each => each.startsWith('ACL SETUSER headgate '))
  if (line === undefined) throw new Error('the guide shows no ACL SETUSER line')
  return line.split(' ')
}

async function prepare(ports: readonly number[]): Promise<void> {
  for (const port of ports) {
    expect(await sendCommand(port, ...publishedLine())).toBe('OK')
    await sendCommand(port, 'FUNCTION', 'LOAD', functionLibraryCode())
  }
}

let single: RedisProcess
let cluster: RedisCluster
const clients: Record<'single' | 'cluster', () => MakeClient> = {
  single: () => singleClient(single.port, { ioredis: USER, nodeRedis: USER }),
  cluster: () => clusterClient(cluster, { ioredis: { redisOptions: USER }, nodeRedis: { defaults: USER } }),
}

beforeAll(async () => {
  single = await startRedis()
  cluster = await startCluster({ primaries: 3, replicasPerPrimary: 0 })
  await prepare([single.port, ...cluster.nodes.map(({ port }) => port)])
})
afterAll(async () => {
  await single.stop()
  await cluster.stop()
})

describe('the published user', () => {
  it('the published user may do what the scripts and the clients need, and nothing more', () => {
    const used = new Set(['evalsha', 'eval', 'fcall', 'info', 'cluster|slots', 'cluster|info', 'asking'])
    for (const file of readdirSync(LUA, { recursive: true, encoding: 'utf8' })) {
      // The clock of a test is not for a user in production.
      if (!file.endsWith('.lua') || file.endsWith('test_clock.lua')) continue
      const text = readFileSync(new URL(file, LUA), 'utf8')
      for (const [, command] of text.matchAll(/\bcall\('([A-Z]+)'/g)) used.add(`${command}`.toLowerCase())
    }
    const allowed = publishedLine().filter(word => word.startsWith('+'))
    expect(allowed.map(word => word.slice(1)).sort()).toEqual([...used].sort())
    expect(publishedLine().slice(0, 10)).toEqual(
      'ACL SETUSER headgate reset resetchannels -@all on >PASSWORD ~ratelimit:* ~rate-limit:control'.split(
        ' ',
      ),
    )
  })

  describe.each(['single', 'cluster'] as const)('on a %s', topology => {
    describe.each(LIBRARIES)('with %s', library => {
      it('the published user reads and changes control and overrides', async () => {
        const store = directRedisStore(clients[topology]()(library).client)
        const { control } = store
        await store.ready()
        await control.setControl({ multiplier: '1' })
        await control.putOverride(`subject user:${library}`, '{}', 60_000)
        const key = `subject user:${library}`
        expect(await control.read()).toMatchObject({
          control: { multiplier: '1' },
          overrides: { entries: new Map([[key, expect.objectContaining({ text: '{}' })]]) },
        })
        expect(await control.removeOverride(`subject user:${library}`)).toBe(true)
        await store.close()
      })

      it.each(MODES)('the published user decides, peeks, refunds and resets by %s', async use => {
        const warnings: StoreWarning[] = []
        const store = directRedisStore(clients[topology]()(library).client, {
          use,
          deadlineMs: 5_000,
          onWarning: warning => warnings.push(warning),
        })
        await store.ready()
        const checks = [LOG, BUCKET, COUNTER, BUCKETS].flatMap(limit => [
          check(`user:${library}-${use}`, limit),
          check(`tenant:${library}-${use}`, limit),
        ])
        for (let round = 0; round < 3; round++) {
          const answer = await askStore(store, all(...checks))
          expect(answer.charged).toBe(0)
          await store.refund(
            checks.map((each, index) => ({
              check: each,
              units: 1,
              chargedAtUs: round === 0 ? null : (answer.verdicts[0]?.[index]?.chargedAtUs ?? null),
            })),
          )
        }
        expect((await askStore(store, all(...checks), true)).charged).toBe(0)
        await askStore(store, all(...checks))
        await store.reset(checks)
        // A full window is searched for the time when there is room again.
        const small = { ...LOG, limit: 2 }
        const tight = [check(`user:${library}-${use}`, small)]
        for (let round = 0; round < 4; round++) await askStore(store, all(...tight))
        expect((await askStore(store, all(...tight))).charged).toBe(-1)
        await store.close()
        expect(warnings).toEqual([])
      })
    })
  })

  it.each([
    ['KEYS', '*'],
    ['SCAN', '0'],
    ['FLUSHALL'],
    ['FLUSHDB'],
    ['CONFIG', 'GET', 'requirepass'],
    ['CONFIG', 'SET', 'maxmemory', '1'],
    ['EVAL', "return redis.call('HMGET', KEYS[1], 'x')", '1', 'sessions:42'],
    ['EVAL', "return redis.call('HMGET', 'sessions:42', 'x')", '0'],
    ['EVAL', "return redis.call('KEYS', '*')", '0'],
    ['SCRIPT', 'FLUSH'],
    ['SCRIPT', 'LOAD', 'return 1'],
    ['FUNCTION', 'FLUSH'],
    ['FUNCTION', 'LOAD', '#!lua name=other\nreturn 1'],
    ['DEBUG', 'SLEEP', '0'],
    ['HSET', 'sessions:42', 'user', 'root'],
    ['STRLEN', 'ratelimit:v2:x'],
    ['SUBSCRIBE', 'news'],
    ['PUBLISH', 'news', 'x'],
    ['CLIENT', 'LIST'],
    ['ACL', 'LIST'],
    ['MONITOR'],
    ['SHUTDOWN'],
  ])('the published user is rejected %s %s', async (...command) => {
    const connection = await openConnection(single.port)
    expect(await connection.send('AUTH', USER.username, USER.password)).toBe('OK')
    const reply = await connection.send(...command)
    connection.close()
    expect(reply).toBeInstanceOf(Error)
    expect(String(reply)).toMatch(/NOPERM|can't (run|access)|ACL failure in script/)
  })
})
