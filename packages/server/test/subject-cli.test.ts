/**
 * `headgate check`, `inspect`, `reset`, `control`, `functions` and `completion`, on a running server and on Redis
 * itself.
 */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { sendCommand } from '../../headgate/test/support/resp.ts'
import { type HeadgateProcess, runHeadgate, serveHeadgate } from './support/headgate-process.js'
import { runInProcess } from './support/run-in-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-subject-cli-'))
const FILE = join(folder, 'headgate.yaml')
writeFileSync(
  FILE,
  `policies:
  api: { algorithm: sliding-window-log, limit: 2, window: 1h }
  login: { algorithm: token-bucket, capacity: 1, refillPerSecond: 0.001 }
default: { policy: api }
rules:
  - { name: login, match: { method: POST, path: /login }, policy: login }
`,
)
let redis: RedisProcess
let server: HeadgateProcess
beforeAll(async () => {
  redis = await startRedis()
  server = await serveHeadgate('--config', FILE, '--demo', '--redis', redis.url)
})
beforeEach(async () => void (await sendCommand(redis.port, 'FLUSHALL')))
afterAll(async () => {
  await server?.end('SIGTERM')
  await redis?.stop()
  rmSync(folder, { recursive: true, force: true })
})

const places = ['--server', '--redis'] as const
type Place = (typeof places)[number]
const at = (place: Place) =>
  place === '--server' ? ['--server', server.adminUrl] : ['--redis', redis.url, '--config', FILE]
const run = (place: Place, ...args: string[]) => runInProcess([...args, ...at(place)])

/** Has a subject denied, and returns the reference by which the server knows it then. */
async function denied(subject: string): Promise<string> {
  const askedAtMs = Date.now()
  const headers = { 'Content-Type': 'application/json' }
  const body = JSON.stringify({ subject, policy: 'api', cost: 3 })
  await fetch(`${server.adminUrl}/v1/check`, { method: 'POST', headers, body })
  const newest = async () => {
    const answer = await fetch(`${server.adminUrl}/v1/denials?limit=1`)
    return ((await answer.json()) as { denials: { atMs: number; reference: string }[] }).denials[0]
  }
  await expect.poll(async () => (await newest())?.atMs ?? 0).toBeGreaterThanOrEqual(askedAtMs)
  return (await newest())?.reference ?? ''
}

describe('by the reference of a denial', () => {
  it('check decides for whom it stands, and reset and inspect take it too', async () => {
    const reference = await denied('user:who')
    expect(await run('--server', 'check', reference, '--policy', 'api')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^allowed: 1 of 2 left by policy api/),
    })
    expect((await run('--server', 'check', 'user:who', '--policy', 'api', '--peek')).out).toMatch(
      /^allowed: 1 of 2/,
    )
    expect((await run('--server', 'inspect', reference)).out).toContain('api.log-1h')
    expect((await run('--server', 'reset', reference)).code).toBe(0)
    expect(
      (await run('--server', 'check', reference, '--method', 'GET', '--path', '/', '--peek')).out,
    ).toMatch(/^allowed: 2 of 2/)
  })

  it('check says why it cannot ask for a key, for nobody it knows, or without a server', async () => {
    const key = await denied('apikey:canary-key-of-somebody')
    expect(await run('--server', 'check', key, '--policy', 'api')).toMatchObject({
      code: 2,
      err: expect.stringContaining('only a keyed hash is kept'),
    })
    expect((await run('--server', 'check', 'aaaaaaaaaaaa', '--policy', 'api')).err).toContain('denied lately')
    expect(await run('--redis', 'check', 'aaaaaaaaaaaa', '--policy', 'api')).toMatchObject({
      code: 2,
      err: expect.stringContaining('Redis alone does not know a reference'),
    })
  })
})

describe.each(places)('at %s', place => {
  it('check charges and reports what is left, and ends with 5 when it is denied', async () => {
    expect(await run(place, 'check', 'user:1', '--policy', 'api')).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^allowed: 1 of 2 left by policy api, resets in 3600 s\n$/),
    })
    await run(place, 'check', 'user:1', '--policy', 'api')
    expect(await run(place, 'check', 'user:1', '--policy', 'api')).toMatchObject({
      code: 5,
      out: expect.stringMatching(/^denied by policy api: limit-exceeded, next in \d+ s\n$/),
      err: '',
    })
  })

  it('check goes by the rules for a request, and --peek charges nothing', async () => {
    const login = ['check', 'user:2', '--method', 'POST', '--path', '/login', '--json']
    expect(JSON.parse((await run(place, ...login, '--peek')).out)).toMatchObject({
      allowed: true,
      rule: 'login',
    })
    expect((await run(place, ...login)).code).toBe(0)
    expect((await run(place, ...login)).code).toBe(5)
  })

  it('check blames the policy of the rule that denied, not the tier of the caller', async () => {
    const login = ['check', 'user:4', '--method', 'POST', '--path', '/login', '--tier', 'free']
    expect((await run(place, ...login)).code).toBe(0)
    expect(await run(place, ...login)).toMatchObject({
      code: 5,
      out: expect.stringMatching(/^denied by policy login: limit-exceeded, next in \d+ s\n$/),
    })
  })

  it('inspect says what is used and under which key, and reset forgets it', async () => {
    await run(place, 'check', 'user:3', '--policy', 'api')
    const { code, out } = await run(place, 'inspect', 'user:3')
    expect(code).toBe(0)
    expect(out).toContain('user:3')
    const key = /^ {2}(ratelimit:\S+user:3\S*api\S+)$/m.exec(out)?.[1] ?? 'no key'
    expect(await sendCommand(redis.port, 'EXISTS', key)).toBe(1)
    expect(await run(place, 'reset', 'user:3')).toMatchObject({ code: 0 })
    expect(
      JSON.parse((await run(place, 'check', 'user:3', '--policy', 'api', '--peek', '--json')).out),
    ).toMatchObject({
      remaining: 2,
    })
  })

  it('control is switched off and on, scaled, and shown', async () => {
    expect((await run(place, 'control', 'off')).out).toBe('limits off, multiplier 1\n')
    expect((await run(place, 'control', 'multiplier', '2')).out).toBe('limits off, multiplier 2\n')
    expect((await run(place, 'control', 'on')).out).toBe('limits on, multiplier 2\n')
    expect((await run(place, 'control', 'status')).out).toBe('limits on, multiplier 2\n')
  })

  it.each([
    [['check', 'user:1'], '--policy: expected --policy, --tier, or --method and --path'],
    [['check', 'user:1', '--policy', 'nope'], 'expected one of'],
    [['check', 'user:1', '--method', 'GET'], '--path: expected together with --method'],
    [['check', 'user:1', '--path', '/', '--policy', 'api'], '--policy: expected without --path'],
    [['check', 'user:1', '--policy', 'api', '--cost', 'x'], '--cost: expected'],
    [['reset', 'user:1', '--scope', 'x'], '--policy: expected one of'],
    [['control', 'multiplier', '-3'], 'multiplier'],
  ])('a command rejects %j with exit code 2', async (args, message) => {
    const { code, out, err } = await run(place, ...args)
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(message)
  })
})

describe('headgate functions', () => {
  it('functions load loads the library that stores with functions use', async () => {
    const { code, out } = await runInProcess(['functions', 'load', '--redis', redis.url])
    expect({ code, out }).toEqual({ code: 0, out: 'loaded into redis\n' })
    expect(JSON.stringify(await sendCommand(redis.port, 'FUNCTION', 'LIST'))).toContain('headgate')
    expect((await runInProcess(['functions', 'print'])).out).toMatch(/^#!lua name=headgate/)
  })

  it('functions load says when Redis is not there', async () => {
    const { code, err } = await runInProcess(['functions', 'load', '--redis', 'redis://127.0.0.1:1'])
    expect(code).toBe(3)
    expect(err).toContain('--redis: ')
  })
})

describe('headgate completion', () => {
  it('completion completes commands and flags in a real bash', async () => {
    const { code, out } = await runInProcess(['completion', 'bash'])
    expect(code).toBe(0)
    const complete = (...words: string[]) => {
      const line = words.map(word => `'${word}'`).join(' ')
      const script = `${out}\nCOMP_WORDS=(${line}); COMP_CWORD=${words.length - 1}; _headgate; echo "\${COMPREPLY[@]}"`
      return execFileSync('bash', ['-c', script], { encoding: 'utf8' }).trim()
    }
    expect(complete('headgate', 'si')).toBe('simulate')
    expect(complete('headgate', 'control', 'o')).toBe('on off')
    expect(complete('headgate', 'override', 'set', '--rea')).toBe('--reason')
    expect(complete('headgate', 'inspect', 'user:1', '--js')).toBe('--json')
    expect(complete('headgate', 'serve', '--log-format', 'j')).toBe('json')
    expect(complete('headgate', 'completion', 'f')).toBe('fish')
  })

  it('completion finds the names in the policy file of the folder', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'headgate-completion-'))
    const text = 'tiers: { gold: { minute: 9 } }\ndefault: { tier: gold }\n'
    writeFileSync(join(folder, 'headgate.yaml'), text)
    const { code, stdout } = await runHeadgate(['completion', 'values', 'tier'], folder)
    expect({ code, stdout }).toEqual({ code: 0, stdout: 'gold\n' })
    rmSync(folder, { recursive: true })
  })

  it.each(['zsh', 'fish'])('completion knows %s', async shell => {
    const { code, out } = await runInProcess(['completion', shell])
    expect(code).toBe(0)
    expect(out).toContain('simulate')
  })

  it('completion rejects other shells', async () => {
    expect(await runInProcess(['completion', 'cmd'])).toMatchObject({ code: 2, out: '' })
  })
})

it('a policy is asked for in Redis itself with the file that has it', async () => {
  expect(await runInProcess(['check', 'user:42', '--policy', 'login', '--redis', redis.url])).toMatchObject({
    code: 2,
    err: 'headgate: --config: expected the policy file that has the policy, beside --redis; got none\n',
  })
})
