import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, it } from 'vitest'
import { combinedLog } from '../src/simulate/combined-log.js'
import { DeniedCallers } from '../src/simulate/denied-callers.js'
import { createLineReader, formatOf } from '../src/simulate/log-format.js'
import { readTime } from '../src/simulate/logged-request.js'
import { synthesize } from '../src/simulate/synthetic.js'
import { Timeline } from '../src/simulate/timeline.js'
import { runInProcess } from './support/run-in-process.js'

const folder = mkdtempSync(join(tmpdir(), 'headgate-simulate-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function file(name: string, text: string): string {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const policy = (limit: number, more = '') =>
  `policies: { api: { algorithm: sliding-window-log, limit: ${limit}, window: 1m } }\ndefault: { policy: api }\n${more}`
const THREE = file('three.yaml', policy(3))
const TWO = file('two.yaml', policy(2))

/** Five requests of one caller within a minute, two of another, one more of the first a minute later. */
const SECONDS = [0, 10, 20, 30, 40, 41, 42, 100]
const CALLERS = [
  '192.0.2.1',
  '192.0.2.1',
  '192.0.2.1',
  '192.0.2.1',
  '192.0.2.1',
  '192.0.2.2',
  '192.0.2.2',
  '192.0.2.1',
]
const clock = (second: number) => `09:0${Math.floor(second / 60)}:${`${second % 60}`.padStart(2, '0')}`
const COMBINED = SECONDS.map(
  (second, index) =>
    `${CALLERS[index]} - - [17/Nov/2026:${clock(second)} +0000] "GET /search?q=${index} HTTP/1.1" 200 12 "-" "curl/8"\n`,
).join('')
const JSON_LINES = SECONDS.map(
  (second, index) =>
    `${JSON.stringify({ time: `2026-11-17T${clock(second)}Z`, method: 'GET', path: '/search', ip: CALLERS[index] })}\r\n`,
).join('')
const CSV = `time,client_ip,request\n${SECONDS.map(
  (second, index) =>
    `${Date.UTC(2026, 10, 17, 9, 0, second) / 1000},${CALLERS[index]},"GET /a,""b"" HTTP/1.1"\n`,
).join('')}`

async function simulateJson(...args: readonly string[]) {
  const { code, out, err } = await runInProcess(['simulate', ...args, '--json'])
  expect({ code, err }).toEqual({ code: 0, err: '' })
  return JSON.parse(out)
}

describe('headgate simulate', () => {
  it.each([
    '{"time":1e300,"ip":"192.0.2.1"}',
    '{"time":9.1e15,"ip":"192.0.2.1"}',
    '{"time":"+275000-01-01T00:00:00Z","ip":"192.0.2.1"}',
    '{"time":"1900-01-01T00:00:00Z","ip":"192.0.2.1"}',
    '{"time":-1,"ip":"192.0.2.1"}',
    '{"time":2,"ip":"192.0.2.1","cost":1e300}',
    '{"time":2,"ip":"192.0.2.1","cost":5000000000}',
    '{"time":2,"subject":"user:"}',
    '{"time":2,"subject":":x"}',
  ])('simulate passes over the line %s, says so, and plays the others', async line => {
    const log = file('odd.json', `{"time":1,"ip":"192.0.2.1"}\n${line}\n{"time":3,"ip":"192.0.2.1"}\n`)
    expect(await simulateJson(log, '--config', THREE)).toMatchObject({
      requests: 2,
      unread: 1,
      outOfOrder: 0,
      from: '1970-01-01T00:00:01.000Z',
      to: '1970-01-01T00:00:03.000Z',
    })
    const { code, out } = await runInProcess(['simulate', log, '--config', THREE])
    expect(code).toBe(0)
    expect(out).toContain('1 line told of no request, or of an impossible time, caller or cost')
  })

  it.each([
    ['combined', COMBINED],
    ['json', JSON_LINES],
    ['csv', CSV],
  ])(
    'simulate denies what the policy file would have denied, by a log in the format %s',
    async (format, text) => {
      const log = file(`access.${format}`, text)
      expect(await simulateJson(log, '--config', THREE)).toMatchObject({
        requests: 8,
        unread: 0,
        from: '2026-11-17T09:00:00.000Z',
        to: '2026-11-17T09:01:40.000Z',
        files: [
          {
            denied: 2,
            deniedCallers: 1,
            byLimit: { 'api.log-1m': 2 },
            callers: [{ subject: 'ip:192.0.2.1', denied: 2, firstAtMs: Date.UTC(2026, 10, 17, 9, 0, 30) }],
          },
        ],
      })
    },
  )

  it('simulate compares two files on the same requests', async () => {
    const log = file('access.log', COMBINED)
    const report = await simulateJson(log, '-c', THREE, '--against', TWO)
    expect(report.files.map(({ denied }: { denied: number }) => denied)).toEqual([2, 3])
    expect(report.differences).toEqual({ onlyFirst: 0, onlySecond: 1 })
  })

  it('simulate tells people who would have been denied, when and how often', async () => {
    const { code, out } = await runInProcess(['simulate', file('access.log', COMBINED), '-c', THREE])
    expect(code).toBe(0)
    expect(out).toContain('8 requests in 1 min 40 s, from 2026-11-17 09:00:00 to 2026-11-17 09:01:40 UTC')
    expect(out).toContain(`${THREE} would have denied 2 of them (25.0 %)`)
    expect(out).toMatch(/ip:192\.0\.2\.1 +2 +first at 2026-11-17 09:00:30/)
  })

  it('simulate counts shadow denials beside real ones', async () => {
    const shadow = file('shadow.yaml', policy(3, 'mode: shadow\n'))
    const { files } = await simulateJson(file('access.log', COMBINED), '-c', shadow)
    expect(files).toMatchObject([{ denied: 0, deniedInShadow: 2 }])
  })

  it('simulate holds requests to the rules, tiers and costs of the file', async () => {
    const rules = file(
      'rules.yaml',
      policy(3, 'rules: [{ name: costly, match: { path: /search }, policy: api, cost: 2 }]\n'),
    )
    expect(await simulateJson(file('access.log', COMBINED), '-c', rules)).toMatchObject({
      files: [{ denied: 5 }],
    })
  })

  it('simulate skips lines without a request, and reports how many', async () => {
    const log = file('torn.log', `${COMBINED}garbage\n\u0000\u0001 [ ] "\n{}\n`)
    expect(await simulateJson(log, '-c', THREE)).toMatchObject({ requests: 8, unread: 3 })
  })

  it('simulate takes a request that is earlier than the one before it as one of the same time', async () => {
    const log = file('late.log', COMBINED.split('\n').reverse().join('\n'))
    expect(await simulateJson(log, '-c', THREE)).toMatchObject({ requests: 8, outOfOrder: 7 })
  })

  it('simulate shows names from the log harmlessly, on the terminal and in the page', async () => {
    const hostile = '<img src=x onerror=alert(1)>\u001b[2J'
    const line = JSON.stringify({ time: 1_800_000_000, subject: `user:${hostile}` })
    const html = join(folder, 'report.html')
    const log = file('hostile.json', `${line}\n`.repeat(5))
    const { code, out } = await runInProcess(['simulate', log, '-c', THREE, '--html', html])
    expect(code).toBe(0)
    expect(out).not.toContain('\u001b')
    const page = readFileSync(html, 'utf8')
    expect(page).toContain('2 denied (40.0 %)')
    expect(page).not.toContain('<img')
    expect(page).not.toContain('\u001b')
  })

  it('simulate never shows the id of an API key', async () => {
    const line = JSON.stringify({ time: 1_800_000_000, subject: 'apikey:canary-4711' })
    const { out } = await runInProcess(['simulate', file('keys.json', `${line}\n`.repeat(9)), '-c', THREE])
    expect(out).toContain('apikey:*')
    expect(out).not.toContain('canary')
  })

  it('simulate generates traffic if there is no log, the same for the same seed', async () => {
    const args = ['--synthetic', 'abuse', '--rate', '20', '--seconds', '60', '--callers', '50', '-c', THREE]
    const first = await simulateJson(...args)
    expect(first).toEqual(await simulateJson(...args))
    expect(first.requests).toBeGreaterThan(1_000)
    expect(first.files[0].callers[0].subject).toBe('ip:10.0.0.0')
  })

  it.each([
    ['neither a log nor a pattern', ['-c', THREE], 'log: expected a file'],
    ['both', ['x.log', '--synthetic', 'steady', '-c', THREE], 'log: expected a file'],
    [
      'a log that is not there',
      ['missing.log', '-c', THREE],
      'missing.log: expected a log that can be read; got ENOENT',
    ],
    ['a folder', [folder, '-c', THREE], 'expected a file; got a folder'],
    ['a policy file that is not there', ['-', '-c', 'missing.yaml'], 'missing.yaml: expected a file'],
    ['an unknown format', ['x', '--format', 'xml'], "'--format <name>' argument 'xml' is invalid"],
    ['a rate that is no number', ['--synthetic', 'steady', '--rate', '1x'], 'expected a whole number'],
  ])('simulate rejects %s with exit code 2', async (_name, args, message) => {
    const { code, out, err } = await runInProcess(['simulate', ...args])
    expect({ code, out }).toEqual({ code: 2, out: '' })
    expect(err).toContain(message)
  })
})

describe('a line of a log', () => {
  it('a line of a log has a user where the server knew one, and an IPv6 caller by its /64', () => {
    expect(combinedLog()('2001:db8::1 - ada [17/Nov/2026:10:00:00 +0100] "POST /x HTTP/1.1" 200 1')).toEqual({
      atMs: Date.UTC(2026, 10, 17, 9),
      subjects: ['user:ada', 'ip:2001:db8::/64'],
      method: 'POST',
      path: '/x',
    })
  })

  it('a line of a log is of the format it looks like', () => {
    expect(COMBINED.split('\n').slice(0, 1).map(formatOf)).toEqual(['combined'])
    expect([JSON_LINES, CSV].map(text => formatOf(text.split('\n')[0] ?? ''))).toEqual(['json', 'csv'])
  })

  it('a line of a log is never read from what an object inherits', () => {
    expect(createLineReader('json')('{"__proto__":{"time":1,"ip":"192.0.2.1"}}')).toBeNull()
  })

  it.each([
    ['1800000000', 1_800_000_000_000],
    ['1800000000.25', 1_800_000_000_250],
    ['1800000000123', 1_800_000_000_123],
    ['1800000000123456', 1_800_000_000_123.456],
    ['2027-01-15T08:00:00Z', 1_800_000_000_000],
    ['15/Jan/2027:07:00:00 -0100', 1_800_000_000_000],
  ])('a line of a log may write its time as %s', (text, atMs) => {
    expect(readTime(text)).toBe(atMs)
  })

  it.each(['', 'x', '-1', '99/Foo/2026:00:00:00 +0000', 'Infinity'])(
    'a line of a log has no time in "%s"',
    text => {
      expect(readTime(text)).toBeNaN()
    },
  )
})

it('a timeline keeps every request in a bounded number of steps, however long the log', () => {
  const timeline = new Timeline()
  for (let hour = 0; hour < 10_000; hour++) timeline.add(hour * 3_600_000, hour % 2 === 0)
  const steps = timeline.steps()
  expect(steps.length).toBeLessThanOrEqual(240)
  expect(steps.reduce((sum, { requests }) => sum + requests, 0)).toBe(10_000)
  expect(steps.reduce((sum, { denied }) => sum + denied, 0)).toBe(5_000)
})

it('the worst callers are kept, however many are denied once', () => {
  const deniedCallers = new DeniedCallers()
  for (let round = 0; round < 5; round++) deniedCallers.add('ip:worst', round)
  for (let caller = 0; caller < 250_000; caller++) deniedCallers.add(`ip:${caller}`, caller)
  expect(deniedCallers.size).toBeLessThanOrEqual(100_000)
  expect(deniedCallers.isPartial).toBe(true)
  expect(deniedCallers.top(1)).toEqual([{ subject: 'ip:worst', denied: 5, firstAtMs: 0 }])
})

it('synthetic bursts come every minute', () => {
  const inBurst = [
    ...synthesize({ pattern: 'bursts', rate: 100, callers: 10, seconds: 120, seed: 7 }),
  ].filter(({ atMs }) => (atMs - Date.UTC(2026, 0, 1)) % 60_000 < 5_000)
  expect(inBurst.length).toBeGreaterThan(4_000)
})
