import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { sendCommand } from '../../headgate/test/support/resp.ts'
import { waitUntil } from '../../headgate/test/support/wait-until.ts'
import { type HeadgateProcess, runHeadgate, serveHeadgate } from './support/headgate-process.js'
import { runInProcess } from './support/run-in-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-operate-'))
const file = join(folder, 'headgate.yaml')
writeFileSync(
  file,
  `
policies:
  api: { algorithm: sliding-window-log, limit: 3, window: 1h }
  login: { algorithm: sliding-window-log, limit: 1, window: 1h }
default: { policy: api }
rules:
  - name: login
    match: { method: POST, path: /login }
    policy: login
  - name: reports
    match: { path: /reports/* }
    policy: api
    scope: reports
    cost: 2
skip: { prefixes: [/assets] }
`,
)

const cleanUps: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})
afterAll(async () => {
  await sharedServer?.end('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
})

async function serve(...args: string[]) {
  const served = await serveHeadgate('--config', file, '--demo', ...args)
  cleanUps.push(() => served.end('SIGTERM'))
  const statuses = async (count: number, path = '/', method = 'GET') => {
    const found: number[] = []
    for (let index = 0; index < count; index++) {
      found.push((await fetch(`${served.gatewayUrl}${path}`, { method })).status)
    }
    return found
  }
  return { ...served, statuses, server: ['--server', served.adminUrl] }
}

/** Shared by the tests that leave it as it was. */
let sharedServer: HeadgateProcess | undefined
async function shared(): Promise<HeadgateProcess> {
  sharedServer ??= await serveHeadgate('--config', file, '--demo')
  return sharedServer
}

async function cli(...args: string[]) {
  const { code, out, err } = await runInProcess(args)
  return { code, text: `${out}${err}`.trim() }
}

describe('the gateway', () => {
  it('the gateway decides by the rules of the file, whatever the spelling', async () => {
    const { statuses } = await serve()
    expect(await statuses(1, '/login', 'POST')).toEqual([200])
    expect(await statuses(1, '/LOGIN/?again', 'POST')).toEqual([429])
    expect(await statuses(2, '/reports/7')).toEqual([200, 429])
    expect(await statuses(4)).toEqual([200, 200, 200, 429])
    expect(await statuses(5, '/assets/site')).toEqual([200, 200, 200, 200, 200])
  })
})

describe('headgate control', () => {
  it('control switches a running server off and on, and scales it', async () => {
    const { statuses, server } = await serve()
    expect(await statuses(4)).toEqual([200, 200, 200, 429])
    expect(await cli('control', 'get', ...server)).toEqual({ code: 0, text: 'limits on, multiplier 1' })
    expect(await cli('control', 'set', '--off', ...server)).toEqual({
      code: 0,
      text: 'limits off, multiplier 1',
    })
    expect(await statuses(1)).toEqual([200])
    expect((await cli('control', 'set', '--on', '--multiplier', '2', ...server)).text).toBe(
      'limits on, multiplier 2',
    )
    expect(await statuses(4)).toEqual([200, 200, 200, 429])
  })

  it('control works on Redis itself, and reaches a server that uses it', async () => {
    const redis = await startRedis()
    cleanUps.push(() => redis.stop())
    const { statuses } = await serve('--redis', redis.url)
    expect(await cli('control', 'set', '--multiplier', '0', '--redis', redis.url)).toEqual({
      code: 0,
      text: 'limits on, paused (multiplier 0)',
    })
    expect(await sendCommand(redis.port, 'HGET', 'rate-limit:control', 'multiplier')).toBe('0')
    await waitUntil('paused', async () => !(await statuses(5)).includes(429), { timeoutMs: 2_000 })
  })
})

describe('the control hash, edited by hand', () => {
  it.each([
    ['true', true],
    ['1', true],
    ['on', true],
    ['YES', true],
    ['false', false],
    ['0', false],
    ['Off', false],
    [' no ', false],
    ['', true],
    ['disabled', true],
    ['2', true],
  ])('a server obeys the control hash, edited by hand: enabled %j', async (word, enabled) => {
    handEdited ??= await startRedis()
    await sendCommand(handEdited.port, 'HSET', 'rate-limit:control', 'enabled', word)
    const { code, text } = await cli('control', 'get', '--redis', handEdited.url)
    expect(code).toBe(0)
    expect(text).toContain(`limits ${enabled ? 'on' : 'off'}, multiplier 1`)
    const isUnderstood = ['true', '1', 'on', 'yes', 'false', '0', 'off', 'no'].includes(
      word.trim().toLowerCase(),
    )
    const warning = `control enabled: expected true, on, yes or 1, or false, off, no or 0; got ${JSON.stringify(word)}`
    expect(text.includes(warning)).toBe(!isUnderstood)
  })

  let handEdited: RedisProcess | undefined
  afterAll(() => handEdited?.stop())
})

describe('headgate override', () => {
  const why = ['--ttl', '1h', '--reason', 'launch day', '--by', 'ada']

  it('an override is set, listed, obeyed and removed', async () => {
    const { statuses, server } = await serve()
    expect(await statuses(1, '/login', 'POST')).toEqual([200])
    const set = ['override', 'set', '--rule', 'login', '--limit', 'log-1h=3', ...why, ...server]
    const dry = await cli(...set, '--dry-run')
    expect(dry.text).toContain('before sliding-window-log 1 in 1h')
    expect((await cli('override', 'list', ...server)).text).toBe('none')
    const done = await cli(...set)
    expect(done).toMatchObject({ code: 0, text: expect.stringMatching(/^in force/) })
    expect(done.text).toContain('after  sliding-window-log 3 in 1h')
    expect(await statuses(3, '/login', 'POST')).toEqual([200, 200, 429])
    const { text } = await cli('override', 'list', ...server)
    expect(text).toMatch(/^rule login: log-1h 3, until \d{4}-.*Z, by ada: launch day$/)
    expect((await cli('override', 'remove', '--rule', 'login', ...server)).text).toBe('removed')
    expect((await cli('override', 'remove', '--rule', 'login', ...server)).text).toBe('there was none')
    expect((await cli('override', 'list', ...server)).text).toBe('none')
  })

  it('a ban is set, listed and removed like any other override', async () => {
    const { server } = await serve()
    const target = ['--subject', 'user:banned', '--ban']
    expect((await cli('override', 'set', ...target, ...why, ...server)).text).toBe('in force')
    expect((await cli('override', 'list', ...server)).text).toMatch(/^user:banned: banned, until .* by ada/m)
    const check = async () => (await cli('check', 'user:banned', '--path', '/', ...server)).text
    expect(await check()).toContain('banned')
    expect((await cli('override', 'remove', ...target, ...server)).text).toBe('removed')
    expect(await check()).not.toContain('banned')
  })

  it('an override of a subject may be another tier or numbers of its own', async () => {
    const { server } = await serve()
    const subject = ['--subject', 'user:42']
    expect((await cli('override', 'set', ...subject, '--tier', 'pro', ...why, ...server)).code).toBe(0)
    expect((await cli('override', 'list', ...server)).text).toMatch(/^user:42: tier pro,/)
    expect(
      (await cli('override', 'set', ...subject, '--minute', '5', '--hour', '9', ...why, ...server)).code,
    ).toBe(0)
    expect((await cli('override', 'list', ...server)).text).toMatch(/^user:42: minute 5, hour 9,/)
  })

  it('an override of one subject on one rule is set and removed, by the reference of a denial too', async () => {
    const { statuses, server, gatewayUrl } = await serve()
    expect(await statuses(2, '/login', 'POST')).toEqual([200, 429])
    const denied = await fetch(`${gatewayUrl}/login`, { method: 'POST' })
    const { reference } = (await denied.json()) as { reference: string }
    const target = ['--subject', reference, '--rule', 'login']
    await waitUntil('the reference is known', async () => {
      const set = await cli('override', 'set', ...target, '--limit', 'log-1h=3', ...why, ...server)
      return set.code === 0
    })
    expect(await statuses(3, '/login', 'POST')).toEqual([200, 200, 429])
    const refused = await cli(
      'override',
      'set',
      '--subject',
      reference,
      '--limit',
      'log-1m=3',
      ...why,
      ...server,
    )
    expect(refused).toMatchObject({ code: 2, text: expect.stringMatching(/--limit: expected one of log-1h/) })
    expect((await cli('override', 'list', ...server)).text).toMatch(/^ip:127.0.0.1, rule login: log-1h 3/)
    expect((await cli('override', 'remove', ...target, ...server)).text).toBe('removed')
    expect((await cli('reset', reference, ...server)).code).toBe(0)
    expect(await statuses(1, '/login', 'POST')).toEqual([200])
  })
})

describe('headgate restore', () => {
  it('a Redis that lost its memory gets it back from a running server, and overrides go from one to another', async () => {
    const redis = await startRedis()
    cleanUps.push(() => redis.stop())
    const url = `redis://127.0.0.1:${redis.port}`
    const { server, adminUrl, stdout } = await serve('--redis', url)
    const why = ['--ttl', '1h', '--reason', 'launch', '--by', 'ada']
    expect((await cli('restore', ...server)).text).toBe('nothing was lost')
    await cli('control', 'multiplier', '2', ...server)
    await cli('override', 'set', '--rule', 'login', '--limit', 'log-1h=9', ...why, ...server)
    const exported = (await cli('override', 'export', ...server)).text
    await sendCommand(redis.port, 'FLUSHALL')
    await waitUntil('the loss', async () => {
      const { lost } = (await (await fetch(`${adminUrl}/v1/restore`)).json()) as {
        lost: { overrides: unknown[] } | null
      }
      return lost !== null && lost.overrides.length === 1
    })
    await waitUntil('the log', async () => stdout().includes('the store has lost what operators had set'))
    expect(await (await fetch(`${adminUrl}/v1/stats`)).json()).toMatchObject({ lost: { overrides: 1 } })
    expect((await cli('restore', ...server)).text).toBe('restored limits on, multiplier 2, 1 override')
    expect((await cli('override', 'list', '--redis', url)).text).toMatch(/^rule login: log-1h 9/)

    await cli('override', 'remove', '--rule', 'login', ...server)
    await cli('control', 'reset', ...server)
    const saved = join(folder, 'overrides.json')
    writeFileSync(saved, exported)
    expect((await cli('override', 'import', saved, ...server)).text).toBe('1 set, 0 had ended')
    expect((await cli('override', 'list', ...server)).text).toMatch(/^rule login: log-1h 9.*by ada: launch$/)
  })
})

it('--json answers scripts', async () => {
  const { server } = await serve()
  const json = async (...args: string[]) => JSON.parse((await cli(...args, '--json', ...server)).text)
  expect(await json('control', 'set', '--multiplier', '2')).toEqual({ enabled: true, multiplier: 2 })
  expect(await json('control', 'get')).toEqual({ enabled: true, multiplier: 2 })
  const override = ['--rule', 'login', '--tier', 'pro', '--ttl', '1h', '--reason', 'launch', '--by', 'ada']
  expect(await json('override', 'set', ...override)).toMatchObject({
    set: true,
    changes: [{ rule: 'login', now: ['sliding-window-log 2 in 1h'], after: expect.any(Array) }],
  })
  expect(await json('override', 'list')).toMatchObject({
    overrides: [{ rule: 'login', tier: 'pro', by: 'ada', reason: 'launch', expiresAt: expect.any(Number) }],
  })
  expect(await json('override', 'remove', '--rule', 'login')).toEqual({ removed: true })
})

describe('the metrics', () => {
  it('the metrics count what compare, shadow and candidates found, and say whether the file is in use', async () => {
    const compared = join(folder, 'compared.yaml')
    writeFileSync(
      compared,
      `
mode: compare
policies:
  api:
    limits: { algorithm: sliding-window-log, limit: 5, window: 1h }
    candidate: { algorithm: sliding-window-log, limit: 1, window: 1h }
default: { policy: api }
`,
    )
    const served = await serveHeadgate('--config', compared, '--demo')
    cleanUps.push(() => served.end('SIGTERM'))
    const metrics = async () => (await fetch(`${served.adminUrl}/metrics`)).text()
    for (let index = 0; index < 3; index++) expect((await fetch(served.gatewayUrl)).status).toBe(200)
    expect(await metrics()).toMatch(/^rate_limit_shadow_divergence_total 0$/m)
    await waitUntil('the candidate', async () =>
      /^rate_limit_candidate_total\{policy="api",would="deny"\} [23]$/m.test(await metrics()),
    )
    writeFileSync(compared, 'mode: comparre')
    await waitUntil('stale', async () => /^rate_limit_config_stale 1$/m.test(await metrics()))
    expect(await metrics()).toMatch(/^rate_limit_config_rejected_total 1$/m)
  })
})

describe('over HTTP', () => {
  async function send(adminUrl: string, method: string, path: string, body?: unknown) {
    const answer = await fetch(`${adminUrl}${path}`, {
      method,
      ...(body !== undefined && {
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      }),
    })
    const retryAfter = answer.headers.get('retry-after')
    return { status: answer.status, retryAfter, body: (await answer.json()) as Record<string, unknown> }
  }

  const why = { ttl: '1h', by: 'ada', reason: 'launch' }
  it.each<[string, string, unknown, string, string]>([
    ['PATCH', '/v1/control', { multiplier: -1 }, 'multiplier', 'expected a number from 0 to 1000'],
    ['PATCH', '/v1/control', { multiplier: '2' }, 'multiplier', 'expected a number from 0 to 1000'],
    ['PATCH', '/v1/control', { multiplier: { toString: 1 } }, 'multiplier', 'got a value of type object'],
    ['PATCH', '/v1/control', { enabled: 'no' }, 'enabled', 'enabled: expected true or false; got "no"'],
    ['PATCH', '/v1/control', { enabled: 0 }, 'enabled', 'enabled: expected true or false; got 0'],
    ['PATCH', '/v1/control', { enable: true }, 'enable', 'expected one of enabled, multiplier'],
    ['PATCH', '/v1/control', { 'apikey:canary': true }, 'apikey:*', 'expected one of enabled, multiplier'],
    ['PUT', '/v1/overrides', [], 'body', 'expected a JSON object'],
    ['PUT', '/v1/overrides', { 'apikey:canary': 1 }, 'apikey:*', 'expected one of subject, rule'],
    ['PUT', '/v1/overrides', { subject: 'canary', tier: 'pro', ...why }, 'subject', "expected 'type:id'"],
    [
      'PUT',
      '/v1/overrides',
      { subject: { stored: 'user:1' }, tier: 'pro', ...why },
      'subject',
      'expected a non-empty string',
    ],
    ['PUT', '/v1/overrides', { rule: 'nope', tier: 'pro', ...why }, 'rule', 'expected one of login, reports'],
    ['PUT', '/v1/overrides', { rule: 'login', tier: 'gold', ...why }, 'tier', 'expected one of anonymous'],
    ['PUT', '/v1/overrides', { rule: 'login', tier: 'pro', ...why, ttl: '32d' }, 'ttl', "to '31d'"],
    ['PUT', '/v1/overrides', { rule: 'login', tier: 'pro', ...why, by: '' }, 'by', 'a text of 1 to 200'],
    [
      'PUT',
      '/v1/overrides',
      { rule: 'login', numbers: { minute: -1 }, ...why },
      'numbers.minute',
      'a whole number',
    ],
    [
      'PUT',
      '/v1/overrides',
      { rule: 'login', limits: { 'log-1h': -1 }, ...why },
      'limits.log-1h',
      'a whole number',
    ],
    [
      'PUT',
      '/v1/overrides',
      { rule: 'login', ...why },
      'replacement',
      'expected one of tier, numbers, limits',
    ],
    ['DELETE', '/v1/overrides', {}, 'target', 'expected a subject, a rule, a policy'],
    ['DELETE', '/v1/overrides', { subject: 'canary' }, 'subject', "expected 'type:id'"],
    ['POST', '/v1/explain', { subject: 'user:42', path: 7 }, 'path', 'expected a non-empty string; got 7'],
    [
      'POST',
      '/v1/explain',
      { subject: 'user:42', scope: '' },
      'scope',
      'expected a non-empty string; got ""',
    ],
    ['POST', '/v1/explain', { subject: [] }, 'subject', 'expected at least one'],
    ['POST', '/v1/explain', { subject: 'user:42', cost: -1 }, 'cost', 'a whole number from 0'],
  ])('the call %s %s %j is 400 and names the field', async (method, path, body, field, detail) => {
    const { adminUrl } = await shared()
    const answer = await send(adminUrl, method, path, body)
    expect(answer).toMatchObject({ status: 400, body: { field, detail: expect.stringContaining(detail) } })
    expect(JSON.stringify(answer)).not.toContain('canary')
  })

  it('a rejected call changes nothing', async () => {
    const { adminUrl } = await shared()
    expect((await send(adminUrl, 'GET', '/v1/control')).body).toEqual({ enabled: true, multiplier: 1 })
    expect((await send(adminUrl, 'GET', '/v1/overrides')).body).toEqual({ overrides: [] })
  })

  it('explain says which rules speak, and another site is rejected', async () => {
    const { adminUrl } = await shared()
    const facts = { subject: 'user:42', method: 'POST', path: '/login' }
    expect(await send(adminUrl, 'POST', '/v1/explain', facts)).toMatchObject({
      status: 200,
      body: { levels: [{ rule: 'login' }, { rule: 'default' }] },
    })
    expect((await send(adminUrl, 'GET', '/v1/counts')).body).toMatchObject({ shadowDivergence: 0 })
    const foreign = { headers: { Origin: 'http://evil.example' } }
    expect((await fetch(`${adminUrl}/v1/control`, foreign)).status).toBe(403)
  })

  it('operators get 503 with Retry-After while Redis is away, and mistakes stay mistakes', async () => {
    const redis = await startRedis()
    cleanUps.push(() => redis.stop())
    const { adminUrl } = await serve('--redis', redis.url)
    redis.kill('SIGKILL')
    await redis.exited
    const rejected = { status: 503, retryAfter: '1', body: { detail: expect.stringMatching(/^redis: /) } }
    const override = { rule: 'login', tier: 'pro', ...why }
    const answers = await Promise.all([
      send(adminUrl, 'GET', '/v1/control'),
      send(adminUrl, 'GET', '/v1/overrides'),
      send(adminUrl, 'PUT', '/v1/overrides', override),
      send(adminUrl, 'DELETE', '/v1/overrides', { rule: 'login' }),
    ])
    for (const answer of answers) expect(answer).toMatchObject(rejected)
    expect(await send(adminUrl, 'PATCH', '/v1/control', { multiplier: -2 })).toMatchObject({
      status: 400,
      body: { field: 'multiplier' },
    })
    expect((await send(adminUrl, 'POST', '/v1/explain', { subject: 'user:42', path: '/' })).status).toBe(200)
    expect((await send(adminUrl, 'POST', '/v1/check', { subject: 'user:42', policy: 'api' })).status).toBe(
      200,
    )
  })
})

it.each([1, 2])(
  'control off reaches every server of %d workers directly while Redis is away, and Redis when it is back',
  {
    timeout: 60_000,
  },
  async workers => {
    const redis = await startRedis()
    cleanUps.push(() => redis.stop())
    const args = ['--redis', redis.url, '--workers', String(workers)]
    const [one, other] = [await serve(...args), await serve(...args)]
    expect(await one.statuses(4)).toEqual([200, 200, 200, 429])
    redis.kill('SIGKILL')
    await redis.exited
    const all = ['--all', `${one.adminUrl},${other.adminUrl}`, 'http://127.0.0.1:9']
    const { code, text } = await cli('control', 'off', ...all)
    expect(code).toBe(3)
    expect(text).toContain(`${one.adminUrl}: limits off, multiplier 1`)
    expect(text).toContain(`${other.adminUrl}: limits off, multiplier 1`)
    expect(text).toContain('http://127.0.0.1:9: NOT changed')
    await waitUntil('off in every worker', async () =>
      (await one.statuses(12)).every(status => status === 200),
    )
    expect(await other.statuses(12)).toEqual(new Array(12).fill(200))
    const again = await startRedis({ port: redis.port })
    cleanUps.push(() => again.stop())
    await waitUntil('off in Redis', async () => {
      const stored = await sendCommand(redis.port, 'HGET', 'rate-limit:control', 'enabled').catch(() => null)
      return stored === 'false'
    })
    const alone = await cli('control', 'on', '--all', one.adminUrl)
    expect(alone).toEqual({ code: 0, text: `${one.adminUrl}: limits on, multiplier 1` })
  },
)

it('a command that is rejected before Redis is connected ends', async () => {
  const redis = await startRedis()
  cleanUps.push(() => redis.stop())
  const args = ['override', 'set', '--rule', 'nosuch', '--limit', 'log-1m=5', '--ttl', '30m', '--reason', 'x']
  const { code, stderr } = await runHeadgate([...args, '--redis', redis.url, '--config', file])
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('--rule: expected one of') })
})
