import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { startRedis } from '../../headgate/test/support/redis-process.ts'
import { sendCommand } from '../../headgate/test/support/resp.ts'
import { waitUntil } from '../../headgate/test/support/wait-until.ts'
import { runHeadgate, serveHeadgate } from './support/headgate-process.js'

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
afterAll(() => rmSync(folder, { recursive: true, force: true }))

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

async function cli(...args: string[]) {
  const { code, stdout, stderr } = await runHeadgate(args)
  return { code, text: `${stdout}${stderr}`.trim() }
}

describe('the gateway', () => {
  test('decides by the rules of the file, whatever the spelling', async () => {
    const { statuses } = await serve()
    expect(await statuses(1, '/login', 'POST')).toEqual([200])
    expect(await statuses(1, '/LOGIN/?again', 'POST')).toEqual([429])
    expect(await statuses(2, '/reports/7')).toEqual([200, 429])
    expect(await statuses(4)).toEqual([200, 200, 200, 429])
    expect(await statuses(5, '/assets/site')).toEqual([200, 200, 200, 200, 200])
  })
})

describe('headgate control', () => {
  test('switches a running server off and on, and scales it', async () => {
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

  test('works on Redis itself, and reaches a server that uses it', async () => {
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

  test.each([
    [['control', 'set'], 2, 'expected --on, --off or --multiplier; got none'],
    [['control', 'set', '--on', '--off'], 2, '--on: expected one of --on and --off; got both'],
    [['control', 'set', '--multiplier', 'x'], 2, '--multiplier: expected a number; got "x"'],
    [['control', 'get', '--server', 'nowhere'], 2, '--server: expected a URL; got "nowhere"'],
    [
      ['control', 'get', '--server', 'http://127.0.0.1:1'],
      1,
      'expected a headgate server at http://127.0.0.1:1',
    ],
    [['control', 'get', '--redis', 'redis://127.0.0.1:1'], 1, '--redis: control: could not be read'],
  ])('%j is refused', async (args, code, message) => {
    const server = args.some(arg => arg.startsWith('--server') || arg.startsWith('--redis'))
      ? []
      : ['--server', 'http://127.0.0.1:1']
    const answer = await cli(...args, ...server)
    expect(answer.text).toContain(message)
    expect(answer.code).toBe(code)
  })
})

describe('headgate override', () => {
  const why = ['--ttl', '1h', '--reason', 'launch day', '--by', 'ada']

  test('is set, listed, obeyed and removed', async () => {
    const { statuses, server } = await serve()
    expect(await statuses(1, '/login', 'POST')).toEqual([200])
    const set = ['override', 'set', '--rule', 'login', '--limit', 'log-1h=3', ...why, ...server]
    expect(await cli(...set)).toEqual({ code: 0, text: 'in force' })
    expect(await statuses(3, '/login', 'POST')).toEqual([200, 200, 429])
    const { text } = await cli('override', 'list', ...server)
    expect(text).toMatch(/^rule login: log-1h 3, until \d{4}-.*Z, by ada: launch day$/)
    expect((await cli('override', 'remove', '--rule', 'login', ...server)).text).toBe('removed')
    expect((await cli('override', 'remove', '--rule', 'login', ...server)).text).toBe('there was none')
    expect((await cli('override', 'list', ...server)).text).toBe('none')
  })

  test('of a subject may be another tier or numbers of its own', async () => {
    const { server } = await serve()
    const subject = ['--subject', 'user:42']
    expect((await cli('override', 'set', ...subject, '--tier', 'pro', ...why, ...server)).code).toBe(0)
    expect((await cli('override', 'list', ...server)).text).toMatch(/^user:42: tier pro,/)
    expect(
      (await cli('override', 'set', ...subject, '--minute', '5', '--burst', '2', ...why, ...server)).code,
    ).toBe(0)
    expect((await cli('override', 'list', ...server)).text).toMatch(/^user:42: minute 5, burst 2,/)
  })

  test('is refused by name when it is wrong', async () => {
    const { server } = await serve()
    const set = (...args: string[]) => cli('override', 'set', ...args, ...why, ...server)
    const wrong: [string[], string][] = [
      [['--rule', 'nope', '--tier', 'pro'], 'override rule: expected one of login, reports; got "nope"'],
      [['--subject', 'user:42', '--tier', 'gold'], 'override tier: expected one of anonymous'],
      [['--subject', 'user:42'], 'override replacement: expected one of tier, numbers, limits; got "none"'],
      [['--tier', 'pro'], '--subject: expected one of --subject and --rule; got neither'],
      [['--subject', 'user:42', '--limit', 'log-1h'], '--limit: expected id=units, such as log-1m=500'],
    ]
    for (const [args, message] of wrong) {
      const { code, text } = await set(...args)
      expect(text).toContain(message)
      expect(code).toBeGreaterThan(0)
    }
    expect((await cli('override', 'list', ...server)).text).toBe('none')
  })
})

describe('the metrics', () => {
  test('count what compare, shadow and candidates found, and say whether the file is in use', async () => {
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
    expect(await metrics()).toMatch(/^rate_limit_config_refused_total 1$/m)
  })
})

describe('over HTTP', () => {
  test('a bad field is named with 400, and nothing changes', async () => {
    const { adminUrl } = await serve()
    const send = async (method: string, path: string, body: unknown) => {
      const answer = await fetch(`${adminUrl}${path}`, {
        method,
        headers: { 'Content-Type': 'application/json' },
        body: JSON.stringify(body),
      })
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
    }
    expect(await send('PATCH', '/v1/control', { multiplier: -1 })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining('multiplier: expected a number from 0 to 1000') },
    })
    expect(await send('PATCH', '/v1/control', { enable: true })).toMatchObject({
      status: 400,
      body: { field: 'enable' },
    })
    expect(await send('PUT', '/v1/overrides', [])).toMatchObject({ status: 400, body: { field: 'body' } })
    expect(await send('DELETE', '/v1/overrides', {})).toMatchObject({ status: 400 })
    expect(await send('POST', '/v1/explain', { subject: 'user:42', path: 7 })).toMatchObject({
      status: 400,
      body: { field: 'path' },
    })
    const explained = await send('POST', '/v1/explain', {
      subject: 'user:42',
      method: 'POST',
      path: '/login',
    })
    expect(explained).toMatchObject({
      status: 200,
      body: { levels: [{ rule: 'login' }, { rule: 'default' }] },
    })
    expect(await (await fetch(`${adminUrl}/v1/control`)).json()).toEqual({ enabled: true, multiplier: 1 })
    expect(await (await fetch(`${adminUrl}/v1/counts`)).json()).toMatchObject({ shadowDivergence: 0 })
    const foreign = { headers: { Origin: 'http://evil.example' } }
    expect((await fetch(`${adminUrl}/v1/control`, foreign)).status).toBe(403)
  })
})
