/** Questions to the decision API that no program would ask. */
import { setTimeout as sleep } from 'node:timers/promises'
import { createDice, type Dice } from '../../../headgate/test/simulation/dice.js'
import { openClient } from '../support/raw-client.js'
import { lines } from '../support/raw-http.js'
import type { Attack, AttackGroup } from './attack.js'
import { inParallel } from './in-parallel.js'
import { underAttack } from './target.js'

const config = `tiers: default
policies:
  api: { algorithm: sliding-window-log, limit: 5, window: 1m }
default: { policy: api }
rules:
  - { name: login, match: { path: /login }, policy: api }
`

/** As JSON, which has numbers that JavaScript does not. */
const VALUES = [
  'null',
  'true',
  '0',
  '-0',
  '-1',
  '1.5',
  '1e999',
  '9007199254740993',
  '""',
  '"x"',
  '"2"',
  '[]',
  '{}',
  '"user:42"',
  '":"',
  '"user:"',
  '"ip:::1"',
  '"ip:2001:db8::1"',
  '"ApiKey:sk"',
  '"everyone:x"',
  '"__proto__"',
  '"constructor"',
  '"\\u0000"',
  '"\\u001b[2J"',
  '"\\ud800"',
  `"${'x'.repeat(5_000)}"`,
  '"1m"',
  '"31d"',
  '"366d"',
  '"1x"',
  '"api"',
  '"pro"',
  '"login"',
  '"off"',
  '{"minute":5}',
  '{"log-1m":3}',
  '{"toString":1}',
  '{"valueOf":1,"toString":1}',
  '{"length":5}',
  '{"__proto__":{"x":1}}',
  '{"then":1}',
  '[[{"toString":1}]]',
  '{"type":"user","id":"1"}',
  '{"type":{},"id":[]}',
  '{"toJSON":1}',
] as const

type Sound = Readonly<Record<string, string>>
const why: Sound = { ttl: '"1m"', by: '"ada"', reason: '"launch"' }
const ENDPOINTS: readonly [Endpoint, ...Endpoint[]] = [
  { line: 'POST /v1/check', sound: { subject: '"user:1"', policy: '"api"', scope: '"a"', cost: '1' } },
  { line: 'PATCH /v1/control', sound: { enabled: 'true', multiplier: '1' } },
  { line: 'PUT /v1/overrides', sound: { subject: '"user:1"', tier: '"pro"', ...why } },
  { line: 'PUT /v1/overrides', sound: { subject: '"user:2"', numbers: '{"minute":5}', ...why } },
  { line: 'PUT /v1/overrides', sound: { rule: '"login"', limits: '{"log-1m":3}', ...why } },
  { line: 'DELETE /v1/overrides', sound: { subject: '"user:1"' } },
  { line: 'POST /v1/peek', sound: { subject: '"user:1"', policy: '"api"' } },
  { line: 'POST /v1/check', sound: { subject: '"user:1"', method: '"GET"', path: '"/login"' } },
  { line: 'POST /v1/refund', sound: { reference: '"x"', units: '1' } },
  { line: 'POST /v1/reset', sound: { subject: '"user:1"', policy: '"api"' } },
  { line: 'POST /v1/inspect', sound: { subject: '"user:1"', scope: '"a"' } },
  { line: 'POST /v1/subjects/user:1/reset', sound: { policy: '"api"' } },
  { line: 'POST /v1/subjects/user:1/ban', sound: why },
  { line: 'POST /v1/find', sound: { text: '"user:1"' } },
  { line: 'POST /v1/explain', sound: { subject: '"user:1"', method: '"GET"', path: '"/x"', cost: '1' } },
]

/** A reference that nobody was given is not found. */
const REFUSALS = [400, 404]

interface Endpoint {
  readonly line: string
  readonly sound: Sound
}

/** Returns a valid body with one or two fields changed, added or left out. */
function spoiltBody(sound: Sound, dice: Dice): string {
  const fields = new Map(Object.entries(sound))
  for (let changes = dice.whole(1, 2); changes > 0; changes--) {
    const names: [string, ...string[]] = ['checks', '__proto__', 'toString', ...fields.keys()]
    const name = dice.pick(names)
    const value = dice.pick(VALUES)
    if (dice.chance(0.1)) fields.delete(name)
    else fields.set(name, dice.chance(0.2) ? `[${value},${dice.pick(VALUES)}]` : value)
  }
  const body = `{${[...fields].map(([name, value]) => `${JSON.stringify(name)}:${value}`).join()}}`
  return dice.chance(0.05) ? body.slice(0, dice.whole(0, body.length)) : body
}

const fuzzedQuestions: Attack = {
  name: 'fuzzed questions',
  does: 'asks the decision API with fields of every other type, missing, repeated, nested and cut',
  expected:
    'an answer, or a rejection that names the field; never a fault of the server, and nothing a terminal obeys',
  inShort: true,
  run: ({ seed, isShort }) =>
    underAttack({ config }, async ({ adminUrl, stdout }) => {
      const cases = isShort ? 500 : 10_000
      const statuses = new Map<number, number>()
      await inParallel(cases, 16, async number => {
        const dice = createDice(seed).fork(`question ${number}`)
        const { line, sound } = dice.pick(ENDPOINTS)
        const [method = '', path] = line.split(' ')
        const body = spoiltBody(sound, dice)
        const headers = { 'Content-Type': 'application/json' }
        const answer = await fetch(`${adminUrl}${path}`, { method, headers, body })
        const text = await answer.text()
        const isSound = answer.ok || (REFUSALS.includes(answer.status) && 'field' in JSON.parse(text))
        // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what must not come through
        if (!isSound || /[\x00-\x09\x0b-\x1f\x7f-\x9f]/.test(text)) {
          throw new Error(`${line} ${body.slice(0, 200)}: ${answer.status} ${text.slice(0, 200)}`)
        }
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1)
      })
      const fault = /^.*failed.*$/m.exec(stdout())?.[0]
      if (fault !== undefined) throw new Error(`it logged: ${fault}`)
      return `${cases} questions: ${[...statuses].map(([status, count]) => `${count} were ${status}`).join(', ')}`
    }),
}

const brokenOff: Attack = {
  name: 'broken-off questions',
  does: 'announces a body to the decision API, sends a byte of it and resets the connection, again and again',
  expected: 'no line in the log',
  inShort: true,
  run: ({ isShort }) =>
    underAttack({ config }, async ({ adminUrl, stdout }) => {
      const count = isShort ? 100 : 3_000
      const before = stdout()
      const head = lines(
        'POST /v1/check HTTP/1.1',
        'Host: localhost',
        'Content-Type: application/json',
        'Content-Length: 50',
      )
      await inParallel(count, 16, async () => {
        const client = openClient(adminUrl, `${head}{`)
        // Until the server waits for the rest.
        await sleep(10)
        client.socket.resetAndDestroy()
        await client.closed
      })
      await fetch(`${adminUrl}/healthz`).then(answer => answer.arrayBuffer())
      const lineCount = stdout().slice(before.length).split('\n').length - 1
      if (lineCount > 0) throw new Error(`${lineCount} lines were logged`)
      return `${count} broken off, no line logged`
    }),
}

const MB = 1024 * 1024

const crumbled: Attack = {
  name: 'crumbled questions',
  does: 'sends 60 KB of a question byte by byte, each in a chunk of its own, on many connections, and never ends it',
  expected: 'less than 80 MB more memory, and others are answered',
  inShort: true,
  run: ({ isShort }) =>
    underAttack({ config }, async ({ adminUrl, residentBytes }) => {
      const count = isShort ? 25 : 200
      const head = lines(
        'POST /v1/check HTTP/1.1',
        'Host: localhost',
        'Content-Type: application/json',
        'Transfer-Encoding: chunked',
      )
      const before = residentBytes() ?? 0
      let most = 0
      const clients = Array.from({ length: count }, () =>
        openClient(adminUrl, head + '1\r\nx\r\n'.repeat(60_000)),
      )
      const untilMs = performance.now() + (isShort ? 3_000 : 8_000)
      while (performance.now() < untilMs) {
        await sleep(100)
        most = Math.max(most, (residentBytes() ?? 0) - before)
        const { status } = await fetch(`${adminUrl}/healthz`)
        if (status !== 200) throw new Error(`others got ${status}`)
      }
      for (const { socket } of clients) socket.destroy()
      if (most > 80 * MB) throw new Error(`${Math.round(most / MB)} MB more memory`)
      return `${Math.round(most / MB)} MB more memory`
    }),
}

export const questions: AttackGroup = {
  title: 'Decision API',
  attacks: [fuzzedQuestions, brokenOff, crumbled],
}
