/** A canary that is used as an API key everywhere one can be named, and must not appear anywhere. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest'
import { type RedisProcess, startRedis } from '../../headgate/test/support/redis-process.ts'
import { sendCommand } from '../../headgate/test/support/resp.ts'
import { waitUntil } from '../../headgate/test/support/wait-until.ts'
import { type HeadgateProcess, serveHeadgateIn } from './support/headgate-process.js'
import { runInProcess } from './support/run-in-process.js'

const CANARY = 'sk_canary_7f3a'
const SECRET = 'the-subject-secret-canary'
const folder = mkdtempSync(join(tmpdir(), 'headgate-secrets-'))
const secretFile = join(folder, 'subject-secret')
writeFileSync(secretFile, `${SECRET}\n`)
const policyFile = join(folder, 'headgate.yaml')
const POLICY = `
policies: { api: { algorithm: sliding-window-log, limit: 2, window: 1h } }
subjects: { "apikey:${CANARY}": { policy: api } }
`
writeFileSync(policyFile, POLICY)

let redis: RedisProcess
const served: HeadgateProcess[] = []
beforeAll(async () => {
  redis = await startRedis()
})
afterEach(async () => {
  for (const { end } of served.splice(0)) await end('SIGTERM')
})
afterAll(async () => {
  await redis.stop()
  rmSync(folder, { recursive: true, force: true })
})

async function serve(env: Record<string, string>, ...args: string[]): Promise<HeadgateProcess> {
  const started = await serveHeadgateIn(
    { env },
    '--config',
    policyFile,
    '--demo',
    '--redis',
    redis.url,
    ...args,
  )
  served.push(started)
  return started
}

/** Records everything Redis is sent from now on. */
async function monitor(port: number): Promise<{ readonly heard: () => string; readonly socket: Socket }> {
  let heard = ''
  const socket = connect(port, '127.0.0.1', () => socket.write('MONITOR\r\n'))
  socket.on('data', chunk => {
    heard += chunk
  })
  await waitUntil('the monitor', async () => heard.includes('+OK'))
  return { heard: () => heard, socket }
}

/** Returns everything in Redis: keys and values. */
async function everythingStored(url: string): Promise<string> {
  const client = await createClient({ url }).connect()
  let dump = ''
  for await (const keys of client.scanIterator({ MATCH: '*' })) {
    for (const key of keys) {
      const type = await client.type(key)
      const value =
        type === 'hash'
          ? await client.hGetAll(key)
          : type === 'zset'
            ? await client.zRangeWithScores(key, 0, -1)
            : type === 'string'
              ? await client.get(key)
              : type
      dump += `${key} ${JSON.stringify(value)}\n`
    }
  }
  client.destroy()
  return dump
}

async function ask(adminUrl: string, method: string, path: string, body?: unknown): Promise<string> {
  const answer = await fetch(`${adminUrl}${path}`, {
    method,
    ...(body !== undefined && {
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    }),
  })
  return `${answer.status} ${JSON.stringify([...answer.headers])} ${await answer.text()}`
}

it('an API key and the secret appear nowhere: SCAN, MONITOR, logs, metrics, answers, dashboard, command line', async () => {
  const { heard, socket } = await monitor(redis.port)
  const server = await serve({}, '--subject-secret-file', secretFile)
  const { adminUrl } = server
  const subject = `apikey:${CANARY}`
  const why = { ttl: '1h', by: 'ada', reason: 'test' }
  const seen: string[] = []
  const see = async (method: string, path: string, body?: unknown) => {
    seen.push(await ask(adminUrl, method, path, body))
  }

  for (let index = 0; index < 3; index++) await see('POST', '/v1/check', { subject, policy: 'api' })
  await see('POST', '/v1/check', { subject: { type: 'session', id: CANARY }, policy: 'api' })
  await see('POST', '/v1/explain', { subject, path: '/' })
  await see('PUT', '/v1/overrides', { subject, tier: 'pro', ...why })
  await see('GET', '/v1/overrides')
  // Mistakes of a client.
  await see('POST', '/v1/check', { subject, policy: subject })
  await see('POST', '/v1/check', { subject, policy: 'api', cost: subject })
  await see('POST', '/v1/check', { subject: CANARY, policy: 'api' })
  await see('POST', '/v1/check', { [subject]: true })
  await see('POST', '/v1/check', subject)
  await see('PUT', '/v1/overrides', { rule: subject, tier: 'pro', ...why })
  await see('PUT', '/v1/overrides', { subject, tier: subject, ...why })
  await see('PUT', '/v1/overrides', { subject, limits: { [subject]: 1 }, ...why })
  await see('DELETE', '/v1/overrides', { subject: CANARY })
  await see('PATCH', '/v1/control', { [subject]: 1 })
  await see('GET', `/v1/${subject}`)
  await see('GET', '/metrics')
  await see('GET', '/v1/counts')
  await see('GET', '/healthz')
  // Everything the dashboard shows comes from these.
  await see('GET', '/')
  await see('GET', '/v1/stats')
  await see('GET', '/v1/stats/history')
  await see('GET', '/v1/denials')
  await see('GET', '/v1/changes')
  await see('POST', '/v1/inspect', { subject })
  await see('GET', `/v1/subjects/${encodeURIComponent(subject)}`)

  const place = ['--redis', redis.url, '--config', policyFile, '--subject-secret-file', secretFile]
  const change = ['--tier', 'pro', '--ttl', '1h', '--reason', 'test', '--by', 'ada']
  for (const where of [['--server', adminUrl], place]) {
    for (const args of [
      ['override', 'set', '--subject', subject, ...change],
      ['override', 'list'],
      ['override', 'set', '--subject', CANARY, ...change],
      ['override', 'set', '--rule', subject, ...change],
      ['override', 'remove', '--subject', subject],
    ]) {
      const { out, err } = await runInProcess([...args, ...where])
      seen.push(out, err)
    }
  }
  // A file with the key where it does not belong.
  writeFileSync(policyFile, `"${subject}": { policy: api }\n${POLICY}\ndefault: { policy: "${subject}" }\n`)
  await waitUntil('the bad file', async () => server.stdout().includes('NOT in use'))
  const validated = await runInProcess(['rules', 'validate', policyFile])
  seen.push(validated.out, validated.err)
  writeFileSync(policyFile, POLICY)

  const stored = await everythingStored(redis.url)
  const logged = server.stdout()
  socket.destroy()
  // There was something to see.
  expect(stored).toMatch(/\{apikey:~[0-9a-f]{32}\}/)
  expect(heard()).toMatch(/apikey:~[0-9a-f]{32}/)
  expect(seen.filter(text => text.includes('apikey:~')).length).toBeGreaterThan(2)
  expect(logged).not.toContain('WARN_HEADGATE_DEFAULT_SECRET')
  for (const place of [stored, heard(), logged, ...seen]) {
    expect(place).not.toContain(CANARY)
    expect(place).not.toContain(SECRET)
  }
})

describe('the secret', () => {
  const check = { subject: `apikey:${CANARY}`, policy: 'api' }
  const change = ['--limit', 'log-1h=7', '--ttl', '1h', '--reason', 'test', '--by', 'ada']
  const onRedis = (...args: string[]) => runInProcess([...args, '--redis', redis.url, '--config', policyFile])

  /** Returns the name of the caller in a command with these settings. */
  async function nameWith(env: Record<string, string>, ...args: string[]): Promise<string | undefined> {
    for (const [name, value] of Object.entries(env)) vi.stubEnv(name, value)
    await sendCommand(redis.port, 'FLUSHALL')
    await onRedis('override', 'set', '--subject', check.subject, ...change, ...args)
    vi.unstubAllEnvs()
    return /apikey:~[0-9a-f]{32}/.exec(await everythingStored(redis.url))?.[0]
  }

  it('the secret may come from a file or the environment, and names the same callers', async () => {
    const name = await nameWith({}, '--subject-secret-file', secretFile)
    expect(name).toBeDefined()
    expect(await nameWith({ HEADGATE_SUBJECT_SECRET: SECRET })).toBe(name)
    expect(await nameWith({ HEADGATE_SUBJECT_SECRET_FILE: secretFile })).toBe(name)
    const other = await nameWith({ HEADGATE_SUBJECT_SECRET: 'another secret of mine' })
    const none = await nameWith({})
    expect(new Set([name, other, none, undefined]).size).toBe(4)
  })

  it('a missing secret causes a warning that says how to set it', async () => {
    const { stdout } = await serve({})
    expect(stdout()).toMatch(
      /WARN_HEADGATE_DEFAULT_SECRET: subject\.secret: not set.* --subject-secret-file or HEADGATE_SUBJECT_SECRET/,
    )
  })

  it('the secret is used by commands on Redis itself, so that servers obey them', async () => {
    await sendCommand(redis.port, 'FLUSHALL')
    const { adminUrl } = await serve({}, '--subject-secret-file', secretFile)
    const target = ['--subject', check.subject, '--subject-secret-file', secretFile]
    expect(await onRedis('override', 'set', ...target, ...change)).toMatchObject({
      code: 0,
      out: expect.stringMatching(/^in force\n/),
    })
    await waitUntil('the override', async () =>
      (await ask(adminUrl, 'POST', '/v1/explain', { subject: check.subject })).includes(
        'sliding-window-log 7 in 1h',
      ),
    )
  })

  it('a secret that is given twice is rejected', async () => {
    const env = { HEADGATE_SUBJECT_SECRET: SECRET, HEADGATE_SUBJECT_SECRET_FILE: secretFile }
    await expect(serve(env)).rejects.toThrow(
      'HEADGATE_SUBJECT_SECRET: expected one of HEADGATE_SUBJECT_SECRET and HEADGATE_SUBJECT_SECRET_FILE; got both',
    )
  })
})

it('text that operators write reaches a terminal, a log and an answer escaped', async () => {
  await sendCommand(redis.port, 'FLUSHALL')
  const { adminUrl } = await serve({}, '--subject-secret-file', secretFile)
  const evil = '\u001b]0;owned\u0007\u202e\nINJECTED'
  const override = { subject: `user:${evil}`, tier: 'pro', ttl: '1h', by: evil, reason: evil }
  const answers = [
    await ask(adminUrl, 'PUT', '/v1/overrides', override),
    await ask(adminUrl, 'GET', '/v1/overrides'),
    await ask(adminUrl, 'POST', '/v1/explain', { subject: override.subject, scope: evil }),
    await ask(adminUrl, 'POST', '/v1/check', { subject: 'user:1', policy: evil }),
    await ask(adminUrl, 'PATCH', '/v1/control', { [evil]: 1 }),
  ]
  for (const where of [
    ['--server', adminUrl],
    ['--redis', redis.url, '--config', policyFile],
  ]) {
    const { code, out } = await runInProcess(['override', 'list', ...where])
    expect(code).toBe(0)
    expect(out.trimEnd().split('\n').length).toBe(1)
    answers.push(out.trimEnd())
  }
  for (const answer of answers) {
    expect(answer.trimEnd()).not.toMatch(/[\p{Cc}\p{Cf}]/u)
    expect(answer).toMatch(/\\u001b\]0;owned\\+u0007\\+u202e/)
  }
})
