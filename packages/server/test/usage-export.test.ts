/** `headgate usage export` and `GET /v1/usage/export`, on a real Redis. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLimiter } from 'headgate'
import { loadConfig } from 'headgate/config'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { startCluster } from '../../headgate/test/support/redis-cluster.ts'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { sendCommand } from '../../headgate/test/support/resp.ts'
import type { Token } from '../src/admin/tokens.ts'
import { createRedisStore } from '../src/redis/connect.ts'
import { createUsagePages } from '../src/redis/usage-pages.ts'
import { serveAdmin } from './support/admin-api.js'
import { serveHeadgate } from './support/headgate-process.js'
import { runInProcess } from './support/run-in-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-export-'))
const FILE = join(folder, 'headgate.yaml')
writeFileSync(
  FILE,
  `policies:
  plan:
    - { algorithm: sliding-window-log, limit: 1000, window: 1h }
    - { algorithm: quota, limit: 10, per: month, overage: count }
  rates: { algorithm: sliding-window-log, limit: 1000, window: 1h }
default: { tier: pro }
tiers:
  pro: { minute: 100, month: 1000 }
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
  await limiter.check('user:of-a-tier', { tier: 'pro', cost: 6 })
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
  expect(lines[0]).toBe('id,subject,policy,quota,scope,startsAt,endsAt,used,paidWithCredits,overage')
  expect(lines).toHaveLength(1_206)
  const row = lines.find(line => line.includes('cmd'))
  expect(row).toMatch(
    /^"[0-9a-f]{32}","'=cmd:""a,\{b\}: c""","plan","quota-month","global","\d{4}-.*Z","\d{4}-.*Z",1,0,0$/,
  )
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

/** A page as the API answers it. */
interface Page {
  readonly rows: readonly { readonly id: string; readonly subject: string; readonly used: number }[]
  readonly next: string | null
  readonly leftOut: number
}

const closers: (() => unknown)[] = []
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

/** An admin port that exports from a Redis, as `headgate serve` has one. */
async function serveExport(url: string, tokens: readonly Token[] = []): Promise<string> {
  const config = await loadConfig(FILE)
  const limiter = createLimiter({ config })
  const pages = createUsagePages({ redis: { url }, config: () => config })
  const api = await serveAdmin(limiter, tokens, pages)
  closers.push(
    () => pages.close(),
    () => api.close(),
  )
  return `${api.url}/v1/usage/export`
}

async function pageOf(url: string, query: Readonly<Record<string, string>>): Promise<Page> {
  const answer = await fetch(`${url}?${new URLSearchParams(query)}`)
  expect(answer.status).toBe(200)
  return (await answer.json()) as Page
}

/** Reads page after page, with `between` before each but the first. */
async function allPages(
  url: string,
  query: Readonly<Record<string, string>>,
  between: () => Promise<unknown> = async () => {},
): Promise<readonly Page[]> {
  const pages = [await pageOf(url, query)]
  for (let next = pages[0]?.next ?? null; next !== null; next = pages.at(-1)?.next ?? null) {
    await between()
    pages.push(await pageOf(url, { ...query, cursor: next }))
  }
  return pages
}

it('pages over HTTP have every caller, in about as many rows as were asked for, with an id that stays', async () => {
  const url = await serveExport(redis.url)
  await sendCommand(redis.port, 'CONFIG', 'RESETSTAT')
  const pages = await allPages(url, { policy: 'plan', limit: '100' })
  const rows = pages.flatMap(page => page.rows)
  expect(new Set(rows.map(({ id }) => id)).size).toBe(1_205)
  // A step of SCAN gives what it finds in a bucket: a few more than were asked for.
  expect(Math.max(...pages.map(page => page.rows.length))).toBeLessThan(150)
  expect(pages.reduce((sum, { leftOut }) => sum + leftOut, 0)).toBe(1)
  const scans = /cmdstat_scan:calls=(\d+)/.exec(
    String(await sendCommand(redis.port, 'INFO', 'commandstats')),
  )?.[1]
  expect(Number(scans)).toBeLessThanOrEqual(pages.length * 20)
  const again = await allPages(url, { policy: 'plan', limit: '1000' })
  const ids = (some: readonly Page[]) => [...new Set(some.flatMap(page => page.rows.map(({ id }) => id)))]
  expect(ids(again).sort()).toEqual(ids(pages).sort())
})

it('callers who are there from the first page to the last are exported, while others come and go', async () => {
  const own = await startRedis()
  closers.push(() => own.stop())
  const store = createRedisStore({ url: own.url, deadlineMs: 5_000 })
  const limiter = createLimiter({ config: await loadConfig(FILE), store })
  closers.push(() => limiter.close())
  await store.ready()
  const use = (subject: `user:${string}`) => limiter.check(subject, { policy: 'plan' })
  for (let user = 0; user < 300; user++)
    await Promise.all([use(`user:stays-${user}`), use(`user:goes-${user}`)])
  const url = await serveExport(own.url)
  let round = 0
  const pages = await allPages(url, { policy: 'plan', limit: '20' }, async () => {
    // The table of keys grows while it is read, and some of it goes.
    if (++round > 10) return
    const each = Array.from({ length: 100 }, (_, index) => use(`user:new-${round}-${index}`))
    await Promise.all([...each, limiter.reset(`user:goes-${round}`, { policy: 'plan' })])
  })
  const subjects = new Set(pages.flatMap(page => page.rows.map(({ subject }) => subject)))
  expect([...subjects].filter(subject => subject.startsWith('user:stays-'))).toHaveLength(300)
})

it('a cursor goes on at another server, and on a cluster at its node', async () => {
  const cluster = await startCluster({ replicasPerPrimary: 0 })
  closers.push(() => cluster.stop())
  const redisUrl = `redis-cluster://127.0.0.1:${cluster.primaries[0]?.port}`
  const store = createRedisStore({ url: redisUrl, deadlineMs: 5_000 })
  const limiter = createLimiter({ config: await loadConfig(FILE), store })
  closers.push(() => limiter.close())
  await store.ready()
  for (let user = 0; user < 60; user++) await limiter.check(`user:${user}`, { policy: 'plan' })
  const servers = [await serveExport(redisUrl), await serveExport(redisUrl)]
  const subjects = new Set<string>()
  let cursor: string | null = null
  let asked = 0
  do {
    const query = { policy: 'plan', limit: '7', ...(cursor !== null && { cursor }) }
    const page = await pageOf(servers[asked++ % 2] as string, query)
    for (const { subject } of page.rows) subjects.add(subject)
    cursor = page.next
  } while (cursor !== null)
  expect(subjects.size).toBe(60)
  expect(asked).toBeGreaterThan(5)
})

it('a cursor from before Redis was restarted is rejected: its keys are in another order', async () => {
  const first = await startRedis()
  const url = await serveExport(`redis://127.0.0.1:${first.port}`)
  const store = createRedisStore({ url: first.url, deadlineMs: 5_000 })
  const limiter = createLimiter({ config: await loadConfig(FILE), store })
  await store.ready()
  for (let user = 0; user < 30; user++) await limiter.check(`user:${user}`, { policy: 'plan' })
  await limiter.close()
  const { next } = await pageOf(url, { policy: 'plan', limit: '5' })
  const ask = () => fetch(`${url}?policy=plan&cursor=${next}`)
  await first.stop()
  const away = await ask()
  expect([away.status, away.headers.get('Retry-After')]).toEqual([503, '1'])
  const second = await startRedis({ port: first.port })
  closers.push(() => second.stop())
  await expect.poll(async () => (await ask()).status, { timeout: 10_000 }).toBe(400)
  expect(await (await ask()).json()).toMatchObject({
    field: 'cursor',
    got: 'one from before Redis was restarted or replaced',
  })
})

it('pages of CSV can be put together, and their cursor is in a header', async () => {
  const url = await serveExport(redis.url)
  let text = ''
  let cursor: string | null = null
  let leftOut = 0
  do {
    const query = { policy: 'plan', format: 'csv', ...(cursor !== null && { cursor }) }
    const answer = await fetch(`${url}?${new URLSearchParams(query)}`)
    expect(answer.headers.get('Content-Type')).toBe('text/csv; charset=utf-8')
    text += await answer.text()
    cursor = answer.headers.get('Headgate-Next-Cursor')
    leftOut += Number(answer.headers.get('Headgate-Left-Out') ?? 0)
  } while (cursor !== null)
  const lines = text.trimEnd().split('\n')
  expect(lines.filter(line => line.startsWith('id,'))).toEqual([lines[0]])
  expect(new Set(lines).size).toBe(1_206)
  expect(leftOut).toBe(1)
})

it('names are for administrators, and readers see them masked', async () => {
  const url = await serveExport(redis.url, [
    { name: 'billing', role: 'administer', secret: 'a'.repeat(32) },
    { name: 'screen', role: 'read', secret: 'r'.repeat(32) },
    { name: 'proxy', role: 'check', secret: 'c'.repeat(32) },
  ])
  const ask = (secret: string, cursor = '') =>
    fetch(`${url}?policy=plan&limit=1000${cursor}`, {
      headers: { Authorization: `Bearer ${secret.repeat(32)}` },
    })
  const adaOf = async (secret: string) => {
    const first = (await (await ask(secret)).json()) as Page
    const second = (await (await ask(secret, `&cursor=${first.next}`)).json()) as Page
    return [...first.rows, ...second.rows].find(row => row.used === 12)
  }
  const named = await adaOf('a')
  const masked = await adaOf('r')
  expect([named?.subject, masked?.subject]).toEqual(['user:ada', 'user:…'])
  expect(masked?.id).toBe(named?.id)
  expect((await ask('c')).status).toBe(403)
})

it.each([
  ['', 'policy'],
  ['policy=plan&tier=pro', 'policy'],
  ['policy=nowhere', 'policy'],
  ['policy=rates', 'policy'],
  ['policy=plan&period=last', 'period'],
  ['policy=plan&format=xml', 'format'],
  ['policy=plan&limit=0', 'limit'],
  ['policy=plan&limit=1001', 'limit'],
  ['policy=plan&limit=ten', 'limit'],
  ['policy=plan&cursor=', 'cursor'],
  ['policy=plan&cursor=nonsense', 'cursor'],
  ['policy=plan&cursor=WzEsMiwzXQ', 'cursor'],
  ['policy=plan&page=2', 'page'],
])('an export of %j over HTTP is rejected by name', async (query, field) => {
  const answer = await fetch(`${await serveExport(redis.url)}?${query}`)
  expect([answer.status, await answer.json()]).toEqual([400, expect.objectContaining({ field })])
})

it('a cursor of another policy or period is rejected', async () => {
  const url = await serveExport(redis.url)
  const { next } = await pageOf(url, { policy: 'plan', limit: '10' })
  const answer = await fetch(`${url}?policy=plan&period=previous&cursor=${next}`)
  expect([answer.status, await answer.json()]).toEqual([400, expect.objectContaining({ field: 'cursor' })])
})

it('without Redis an export is rejected with the reason', async () => {
  const api = await serveAdmin(createLimiter({ config: await loadConfig(FILE) }))
  closers.push(() => api.close())
  const answer = await fetch(`${api.url}/v1/usage/export?policy=plan`)
  expect([answer.status, await answer.json()]).toEqual([409, expect.objectContaining({ field: 'store' })])
})

it('pages are read one at a time, and who comes when many wait is told to come back', async () => {
  const url = await serveExport(redis.url)
  const answers = await Promise.all(Array.from({ length: 30 }, () => fetch(`${url}?policy=plan&limit=1000`)))
  const statuses = answers.map(({ status }) => status)
  expect(statuses.filter(status => status === 200).length).toBeGreaterThanOrEqual(8)
  expect(statuses.filter(status => status !== 200 && status !== 503)).toEqual([])
  expect(statuses).toContain(503)
  expect((await fetch(`${url}?policy=plan`)).status).toBe(200)
})

it('the callers of tiers are exported by the name of one of them', async () => {
  const { code, out } = await run('--tier', 'pro', '--format', 'json')
  expect([
    code,
    out
      .trim()
      .split('\n')
      .map(line => JSON.parse(line)),
  ]).toEqual([
    0,
    [expect.objectContaining({ subject: 'user:of-a-tier', policy: 'tier', quota: 'quota-month', used: 6 })],
  ])
})

it('headgate serve exports from its Redis, also to the command line', async () => {
  const server = await serveHeadgate('--demo', '--redis', redis.url, '--config', FILE)
  closers.push(() => server.end('SIGTERM'))
  const { rows } = await pageOf(`${server.adminUrl}/v1/usage/export`, { policy: 'plan', limit: '1000' })
  expect(rows.length).toBeGreaterThan(900)
  const args = ['--server', server.adminUrl, '--policy', 'plan', '--format', 'json']
  const { code, out, err } = await runInProcess(['usage', 'export', ...args])
  expect([code, new Set(out.trim().split('\n')).size]).toEqual([0, 1_205])
  expect(err).toContain('left out 1 with long names')
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
