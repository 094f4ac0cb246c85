import { inspect } from 'node:util'
import { slidingWindowLog } from 'headgate'
import { askStore } from 'headgate/testing'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { findFreePort } from '../../headgate/test/support/free-port.ts'
import { type RedisCluster, startCluster } from '../../headgate/test/support/redis-cluster.ts'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { type SentinelSetup, startSentinel } from '../../headgate/test/support/redis-sentinel.ts'
import { sendCommand } from '../../headgate/test/support/resp.ts'
import { createRedisStore } from '../src/redis/connect.js'
import { parseRedisUrl } from '../src/redis/parse-redis-url.js'

const SECRET = 'hunter2-canary'
const LIMIT = slidingWindowLog({ limit: 5, window: '60s' })

function ask(subject: string) {
  const check = { subject, scope: 'global', name: 'test.log-60s', limit: LIMIT, cost: 1 }
  return { alternatives: [[check]], shadow: [] }
}

async function decidesThrough(url: string | readonly string[]): Promise<number | undefined> {
  const store = createRedisStore({ url, deadlineMs: 5_000, onStoreFailure: 'throw' })
  try {
    return (await askStore(store, ask('user:1'))).verdicts[0]?.[0]?.remaining
  } finally {
    await store.close()
  }
}

describe('a Redis url', () => {
  it.each([
    [
      'redis://cache',
      { topology: 'single', tls: false, nodes: [{ host: 'cache', port: 6379 }], database: 0 },
    ],
    ['redis://[::1]:7000/2', { nodes: [{ host: '::1', port: 7000 }], database: 2 }],
    ['rediss://u:p%40ss@cache:6380/3', { tls: true, username: 'u', password: 'p@ss', database: 3 }],
    ['redis://:only@cache', { username: undefined, password: 'only' }],
    ['redis://u:a@b:c@cache', { username: 'u', password: 'a@b:c', nodes: [{ host: 'cache', port: 6379 }] }],
    [
      'redis-cluster://a:1,b,[::2]:3',
      {
        topology: 'cluster',
        nodes: [
          { host: 'a', port: 1 },
          { host: 'b', port: 6379 },
          { host: '::2', port: 3 },
        ],
      },
    ],
    [
      'rediss-sentinel://u:p@a,b:1/main/4',
      {
        topology: 'sentinel',
        tls: true,
        primaryName: 'main',
        database: 4,
        nodes: [
          { host: 'a', port: 26379 },
          { host: 'b', port: 1 },
        ],
      },
    ],
  ])('a Redis url is understood: %s', (url, expected) => {
    expect(parseRedisUrl(url)).toMatchObject(expected)
  })

  it.each([
    '',
    SECRET,
    `http://user:${SECRET}@cache`,
    `redis://:${SECRET}@`,
    `redis://:${SECRET}@cache:99999`,
    `redis://:${SECRET}@cache:port`,
    `redis://:${SECRET}@a,b`,
    `redis://:${SECRET}@cache/db`,
    `redis://:${SECRET}%@cache`,
    `redis-cluster://:${SECRET}@a/1`,
    `redis-sentinel://:${SECRET}@a`,
    `redis-sentinel://:${SECRET}@a/main/1/2`,
    [],
    [`redis://:${SECRET}@a`, `redis-sentinel://:${SECRET}@b/main`],
    [`redis://:${SECRET}@a/1`, `redis://:${SECRET}@b`],
  ])('a bad Redis url is rejected without being repeated: case %#', url => {
    let thrown: unknown
    try {
      createRedisStore({ url })
    } catch (error) {
      thrown = error
    }
    expect(thrown).toMatchObject({
      code: 'ERR_HEADGATE_INVALID_OPTION',
      message: expect.stringMatching(/^Redis url: expected /),
    })
    expect(inspect(thrown, { depth: 10, showHidden: true })).not.toContain(SECRET)
  })
})

describe('the store for a url', () => {
  let server: RedisProcess
  let cluster: RedisCluster
  let sentinel: SentinelSetup
  beforeAll(async () => {
    ;[server, cluster, sentinel] = await Promise.all([
      startRedis(),
      startCluster({ primaries: 3, replicasPerPrimary: 0 }),
      startSentinel({ replicas: 1, sentinels: 1 }),
    ])
    await sendCommand(server.port, 'ACL', 'SETUSER', 'limiter', 'on', `>${SECRET}`, '~*', '+@all')
  })
  afterAll(() => Promise.all([server.stop(), cluster.stop(), sentinel.stop()]))

  it('the store for a url decides on a single server, as the user and in the database of the url', async () => {
    expect(await decidesThrough(`redis://limiter:${SECRET}@127.0.0.1:${server.port}/5`)).toBe(4)
    expect(await decidesThrough(`redis://127.0.0.1:${server.port}/5`)).toBe(3)
    expect(await decidesThrough(`redis://127.0.0.1:${server.port}`)).toBe(4)
  })

  it('the store for a url decides on a cluster, by one url or several', async () => {
    const hosts = cluster.primaries.map(({ port }) => `127.0.0.1:${port}`)
    expect(await decidesThrough(`redis-cluster://${hosts.join(',')}`)).toBe(4)
    expect(await decidesThrough(hosts.map(host => `redis://${host}`))).toBe(3)
  })

  it('the store for a url decides on the primary behind sentinels', async () => {
    const hosts = sentinel.sentinels.map(({ host, port }) => `${host}:${port}`)
    expect(await decidesThrough(`redis-sentinel://${hosts.join(',')}/${sentinel.masterName}`)).toBe(4)
  })

  it.each(['wrong password', 'nobody there'])(
    'the store for a url fails in time and tells no secret: %s',
    async what => {
      const said = [vi.spyOn(console, 'error'), vi.spyOn(console, 'warn'), vi.spyOn(console, 'log')]
      const port = what === 'nobody there' ? await findFreePort() : server.port
      const store = createRedisStore({
        url: `redis://limiter:${SECRET}-wrong@127.0.0.1:${port}`,
        deadlineMs: 200,
        onStoreFailure: 'throw',
      })
      const error = await Promise.resolve(askStore(store, ask('user:1'))).catch((reason: unknown) => reason)
      await store.close()
      const text = inspect([error, said.flatMap(spy => spy.mock.calls)], { depth: 10, showHidden: true })
      for (const spy of said) spy.mockRestore()
      expect(text).toContain('ERR_HEADGATE_STORE')
      expect(text).toContain(what === 'nobody there' ? 'ECONNREFUSED' : 'WRONGPASS')
      expect(text).not.toContain(SECRET)
    },
  )
})
