import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, it } from 'vitest'
import { createServerLog } from '../src/log/server-log.js'
import { serveHeadgate } from './support/headgate-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-log-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Returns what was written, one parsed line each. */
function written(text: string): Record<string, unknown>[] {
  return text
    .trimEnd()
    .split('\n')
    .map(line => JSON.parse(line))
}

it('every line of the JSON log has a level, a time and a message, and failures a cause and a consequence', async () => {
  const file = join(folder, 'headgate.yaml')
  writeFileSync(
    file,
    'policies:\n  api: { algorithm: sliding-window-log, limit: 2, window: 1m }\ndefault: { policy: api }\n',
  )
  const { gatewayUrl, stdout, end } = await serveHeadgate(
    ...['--config', file, '--upstream', 'http://127.0.0.1:9', '--log-format', 'json', '--access-log'],
  )
  await fetch(`${gatewayUrl}/a?token=canary`)
  await fetch(`${gatewayUrl}/b`)
  const denied = await fetch(`${gatewayUrl}/c`, { headers: { 'X-Request-Id': 'abc-1' } })
  const { reference } = (await denied.json()) as { reference: string }
  expect(denied.headers.get('x-request-id')).toEqual(expect.any(String))
  writeFileSync(file, 'policies: nonsense\n')
  await expect.poll(stdout).toContain('NOT in use')
  const { code, stdout: text } = await end('SIGTERM')
  expect(code).toBe(0)
  const lines = written(text)
  for (const line of lines) {
    expect(line).toMatchObject({
      level: expect.stringMatching(/^(?:info|warn|error)$/),
      time: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
      message: expect.any(String),
    })
  }
  const requests = lines.filter(({ message }) => message === 'request')
  expect(requests).toMatchObject([
    {
      method: 'GET',
      path: '/a',
      status: 502,
      client: '127.0.0.1',
      id: expect.any(String),
      upstream: 'http://127.0.0.1:9',
    },
    { path: '/b', status: 502 },
    { path: '/c', status: 429, id: denied.headers.get('x-request-id'), upstream: null, reference },
  ])
  expect(lines.filter(({ message }) => `${message}`.startsWith('429 for'))).toMatchObject([
    {
      subject: 'ip:127.0.0.1',
      reference,
      id: denied.headers.get('x-request-id'),
      method: 'GET',
      path: '/c',
      policy: 'api',
      limit: 'api.log-1m',
      source: 'memory',
      retryAfterMs: expect.any(Number),
    },
  ])
  expect(lines.filter(({ level }) => level === 'warn')).toMatchObject([
    { cause: expect.stringContaining('ECONNREFUSED'), consequence: 'the client got a 5xx' },
  ])
  expect(lines.filter(({ level }) => level === 'error')).toMatchObject([
    { cause: expect.stringContaining('policies'), consequence: 'the last good configuration stays' },
  ])
  expect(text).not.toContain('canary')
})

it('a line of the access log has a time, the client behind the proxy, the request id and the reference', () => {
  let text = ''
  const { access } = createServerLog('text', {
    print: line => {
      text = line
    },
    unreadBytes: 0,
  })
  const entry = { method: 'GET', path: '/a', durationMs: 1.5, upstream: null }
  access({ ...entry, id: 'abc-1', client: '203.0.113.7', status: 429, reference: 'k7qf2m9xabcd' })
  expect(text).toMatch(/^\d{4}-\d\d-\d\dT.*Z 203\.0\.113\.7 GET \/a 429 1\.5 ms abc-1 k7qf2m9xabcd$/)
})

it('the log lets through neither passwords in URLs, nor fields that are called secret, nor control characters', () => {
  for (const format of ['text', 'json'] as const) {
    let text = ''
    const { log, logger } = createServerLog(format, {
      print: line => {
        text += `${line}\n`
      },
      unreadBytes: 0,
    })
    log('failed at redis://user:canary@host', { level: 'error', cause: 'redis://:canary@host is gone' })
    logger.warn({ token: 'canary', apiKey: 'canary', inner: { password: 'canary' } }, 'odd \u001b[2J')
    expect(text).not.toContain('canary')
    expect(text).not.toContain('\u001b')
    expect(text).toContain('redis://***@host')
  }
})

it('lines that nobody reads are left out instead of kept, and counted', () => {
  const lines: string[] = []
  const printer = { print: (line: string) => void lines.push(line), unreadBytes: 0 }
  const { log } = createServerLog('text', printer)
  log('one')
  printer.unreadBytes = 2 ** 30
  log('two')
  log('three')
  printer.unreadBytes = 0
  log('four')
  expect(lines).toEqual(['one', expect.stringMatching(/^2 lines were left out/), 'four'])
})
