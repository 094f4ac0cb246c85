import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { startCluster } from '../../headgate/test/support/redis-cluster.ts'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { startSentinel } from '../../headgate/test/support/redis-sentinel.ts'
import { sendCommand } from '../../headgate/test/support/resp.ts'
import { runInProcess } from './support/run-in-process.js'

let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const doctor = (url: string, ...args: string[]) => runInProcess(['doctor', '--redis', url, ...args])
const urlOf = (user: string) => redis.url.replace('redis://', `redis://${user}:canary@`)

describe('headgate doctor', () => {
  it('doctor finds a Redis healthy, with a line for each check, and leaves nothing behind for long', async () => {
    const { code, out, err } = await doctor(redis.url)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    const checks = [...out.matchAll(/^ok {4}\S+ +(\S+) /gm)].map(([, check]) => check)
    expect(checks).toEqual(['latency', 'clock', 'version', 'eviction', 'functions', 'decisions', 'control'])
    expect(out.trimEnd().split('\n').length).toBe(checks.length)
    for (const key of (await sendCommand(redis.port, 'KEYS', '*doctor*')) as string[]) {
      expect(await sendCommand(redis.port, 'PTTL', key)).toBeLessThanOrEqual(10_000)
    }
  })

  it('doctor prints JSON for scripts', async () => {
    const { code, out } = await doctor(redis.url, '--json')
    expect(code).toBe(0)
    expect(JSON.parse(out)).toMatchObject({
      nodes: [
        {
          node: 'redis',
          findings: expect.arrayContaining([
            { check: 'version', state: 'ok', text: expect.stringMatching(/^(Redis|Valkey) \d/) },
          ]),
        },
        {
          node: 'limits',
          findings: [
            { check: 'decisions', state: 'ok' },
            { check: 'control', state: 'ok' },
          ],
        },
      ],
    })
  })

  it('doctor warns of eviction, and names what a user may not do', async () => {
    await sendCommand(redis.port, 'CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
    await sendCommand(
      redis.port,
      'ACL',
      'SETUSER',
      'weak',
      'on',
      '>canary',
      '~*',
      '+evalsha',
      '+eval',
      '+info',
    )
    const { code, out, err } = await doctor(urlOf('weak'))
    await sendCommand(redis.port, 'CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    expect(code).toBe(1)
    expect(out).toMatch(/^warn {2}redis +eviction +maxmemory-policy allkeys-lru/m)
    expect(out).toMatch(/^fail {2}limits decisions .*lists the rights that a user needs$/m)
    expect(err).toBe('headgate: 2 of the checks failed\n')
    expect(out + err).not.toContain('canary')
  })

  it('doctor is content with the least user of the guide', async () => {
    const guide = readFileSync(new URL('../../../docs/guide/redis.md', import.meta.url), 'utf8')
    const words = (/^ACL SETUSER headgate .*$/m.exec(guide)?.[0] ?? '')
      .replace('>PASSWORD', '>canary')
      .split(' ')
    expect(await sendCommand(redis.port, ...words)).toBe('OK')
    const { code, out } = await doctor(urlOf('headgate'))
    expect(out).not.toMatch(/^(fail|warn)/m)
    expect(code).toBe(0)
  })

  it('doctor looks at every primary of a cluster, and at what sentinels lead to', async () => {
    const cluster = await startCluster({ primaries: 3, replicasPerPrimary: 0 })
    const sentinel = await startSentinel({ sentinels: 1 })
    try {
      const found = await doctor(`redis-cluster://127.0.0.1:${cluster.primaries[0]?.port}`)
      expect(found.code).toBe(0)
      expect(found.out.match(/^ok {4}127\.0\.0\.1:\d+ version/gm)?.length).toBe(cluster.primaries.length)
      const behind = await doctor(
        `redis-sentinel://127.0.0.1:${sentinel.sentinels[0]?.port}/${sentinel.masterName}`,
      )
      expect(behind.out).toMatch(/^ok {4}limits decisions/m)
      expect(behind.code).toBe(0)
    } finally {
      await cluster.stop()
      await sentinel.stop()
    }
  })

  it.each([
    [['doctor'], 2, '--redis: expected a URL, here or in RATE_LIMIT_REDIS_URL; got none'],
    [['doctor', '--redis', 'nowhere'], 2, '--redis: expected redis://'],
    [
      ['doctor', '--redis', 'redis://h', '--config', 'no.yaml'],
      2,
      'no.yaml: expected a file that can be read',
    ],
    [['doctor', '--redis', 'redis://:canary@127.0.0.1:9'], 3, '--redis: connect ECONNREFUSED'],
    [['doctor', 'extra'], 2, 'too many arguments'],
  ])('doctor %j ends with %i', async (args, code, message) => {
    const result = await runInProcess(args)
    expect(result.err).toContain(message)
    expect({ code: result.code, out: result.out }).toEqual({ code, out: '' })
    expect(result.err).not.toContain('canary')
  })
})
