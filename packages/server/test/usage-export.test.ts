/** `headgate usage export`, on a real Redis. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter } from 'headgate'
import { loadConfig } from 'headgate/config'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startCluster } from '../../headgate/test/support/redis-cluster.ts'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { sendCommand } from '../../headgate/test/support/resp.ts'
import { createRedisStore } from '../src/redis/connect.ts'
import { runInProcess } from './support/run-in-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-export-'))
const FILE = join(folder, 'headgate.yaml')
writeFileSync(
  FILE,
  `policies:
  plan:
    - { algorithm: sliding-window-log, limit: 1000, window: 1h }
    - { algorithm: quota, limit: 10, per: month, overage: count }
`,
)
let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis()
  const config = await loadConfig(FILE)
  const store = createRedisStore({ url: redis.url, deadlineMs: 5_000 })
  const limiter = createLimiter({ config, store })
  const other = createLimiter({
    config,
    store: createRedisStore({ url: redis.url, deadlineMs: 5_000, tenant: 'other' }),
  })
  await Promise.all([store.ready(), sendCommand(redis.port, 'CONFIG', 'RESETSTAT')])
  const use = (subject: `${string}:${string}`, cost: number, scope = 'global') =>
    limiter.check(subject, { policy: 'plan', cost, scope })
  for (let user = 0; user < 1_200; user++) await use(`user:${user}`, 2)
  await use('user:ada', 12)
  await use('user:ada', 3, 'exports')
  await use('ip:2001:db8:1:2::7', 4)
  await use('=cmd:"a,{b}: c"', 1)
  await use(`user:${'x'.repeat(300)}`, 1)
  await use(`user:${'{'.repeat(60)}`, 1)
  await limiter.credit('user:only-credits', 5, { policy: 'plan', id: 'x:plan.quota-month' })
  await other.check('user:elsewhere', { policy: 'plan', cost: 7 })
  await limiter.close()
  await other.close()
})
afterAll(async () => {
  await redis?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const run = (...args: string[]) =>
  runInProcess(['usage', 'export', '--redis', redis.url, '--config', FILE, ...args])

it('the export has every caller once, with what it used in the period, and never asks for all keys', async () => {
  const { code, out, err } = await run('--policy', 'plan', '--format', 'json')
  expect(code).toBe(0)
  const rows = out
    .trim()
    .split('\n')
    .map(line => JSON.parse(line) as Record<string, unknown>)
  expect(rows).toHaveLength(1_205)
  expect(new Set(rows.map(({ subject, scope }) => `${subject} ${scope}`)).size).toBe(1_205)
  const of = (subject: string) => rows.filter(row => row.subject === subject)
  expect(of('user:7')).toMatchObject([{ policy: 'plan', quota: 'quota-month', used: 2, overage: 0 }])
  expect(of('user:ada').map(({ scope, used, overage }) => [scope, used, overage])).toEqual(
    expect.arrayContaining([
      ['global', 12, 2],
      ['exports', 3, 0],
    ]),
  )
  expect(rows.filter(({ subject }) => String(subject).startsWith('ip:2001:db8:1:2'))).toMatchObject([
    { used: 4 },
  ])
  expect(of('=cmd:"a,{b}: c"')).toMatchObject([{ used: 1 }])
  expect(rows.filter(({ subject }) => /^user:~[0-9a-f]{32}$/.test(String(subject)))).toHaveLength(1)
  expect(err).toContain('left out 1 with long names')
  const asked = String(await sendCommand(redis.port, 'INFO', 'commandstats'))
  expect(asked).toContain('cmdstat_scan:')
  expect(asked).not.toContain('cmdstat_keys:')
})

it('a cell of the CSV is quoted, and no spreadsheet takes it for a formula', async () => {
  const lines = (await run('--policy', 'plan')).out.trim().split('\n')
  expect(lines[0]).toBe('subject,policy,quota,scope,startsAt,endsAt,used,paidWithCredits,overage')
  expect(lines).toHaveLength(1_206)
  const row = lines.find(line => line.includes('cmd'))
  expect(row).toMatch(/^"'=cmd:""a,\{b\}: c""","plan","quota-month","global","\d{4}-.*Z","\d{4}-.*Z",1,0,0$/)
})

it('the period before is exported as it ended', async () => {
  const key = 'ratelimit:v2:{user:7}:global:plan.quota-month'
  // 10^7 above the units of this period are those of the one before; the last digit is the period's.
  await sendCommand(redis.port, 'INCRBY', key, String(9 * 10 ** 8))
  const { out } = await run('--policy', 'plan', '--period', 'previous', '--format', 'json')
  await sendCommand(redis.port, 'DECRBY', key, String(9 * 10 ** 8))
  expect(JSON.parse(out)).toMatchObject({ subject: 'user:7', used: 9 })
})

it('the export has the callers of every primary of a cluster', async () => {
  const cluster = await startCluster({ replicasPerPrimary: 0 })
  try {
    const url = `redis-cluster://127.0.0.1:${cluster.primaries[0]?.port}`
    const store = createRedisStore({ url, deadlineMs: 5_000 })
    const limiter = createLimiter({ config: await loadConfig(FILE), store })
    await store.ready()
    for (let user = 0; user < 60; user++) await limiter.check(`user:${user}`, { policy: 'plan' })
    await limiter.close()
    const args = ['--redis', url, '--config', FILE, '--policy', 'plan', '--format', 'json']
    const { out } = await runInProcess(['usage', 'export', ...args])
    expect(
      new Set(
        out
          .trim()
          .split('\n')
          .map(line => JSON.parse(line).subject),
      ).size,
    ).toBe(60)
  } finally {
    await cluster.stop()
  }
})

it('the period before has nobody in it yet', async () => {
  const { code, out } = await run('--policy', 'plan', '--period', 'previous')
  expect([code, out.trim().split('\n').length]).toEqual([0, 1])
})

it.each([
  [['--policy', 'plan', '--period', 'last'], '--period'],
  [['--policy', 'plan', '--format', 'xml'], '--format'],
  [['--policy', 'nowhere'], 'policy'],
  [[], '--policy'],
])('an export with %j is rejected by name', async (args, field) => {
  const { code, err } = await run(...args)
  expect([code, err]).toEqual([2, expect.stringContaining(field)])
})
