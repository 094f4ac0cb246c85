/**
 * Measures what finding a rule costs a request: `ruled.request` among 10, 100 and 10,000 rules, next to `limiter.check`, which
 * names its policy. The limiter remembers resolved paths, so paths that never come twice are measured, too. All run in one
 * process, a slice of each in turn: only the ratios mean anything.
 *
 *   npm run bench:rules              about a minute
 *   npm run bench:rules -- --quick   some seconds; rough
 */
import { parseArgs } from 'node:util'
import { createLimiter, slidingWindowCounter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { helpIfAsked } from './harness/help.js'
import { ratioOf, spreadOf } from './report/statistics.js'

helpIfAsked(import.meta.url)

const { values: options } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const ROUNDS = options.quick ? 9 : 41
const SLICE = options.quick ? 20_000 : 100_000
const SUBJECTS = 1_000
const COUNTS = [10, 100, 10_000]

const limit = slidingWindowCounter({ limit: 1_000_000, window: '1h' })
const subjects = Array.from({ length: SUBJECTS }, (_, index) => /** @type {const} */ (`user:${index}`))
const limiter = createLimiter({ policies: { api: limit } })

/** @type {Map<string, (turn: number) => Promise<unknown>>} */
const contestants = new Map([['limiter.check', turn => limiter.check(subjectOf(turn), { policy: 'api' })]])
for (const count of COUNTS) contestants.set(`ruled.request, ${count} rules`, requestAmong(count))
contestants.set(
  'limiter.request, 100 rules, every path new',
  requestAmong(100, turn => `${turn}-${Math.random()}`),
)

/** @param {number} turn */
function subjectOf(turn) {
  return subjects[turn % SUBJECTS] ?? 'user:0'
}

/**
 * @param {number} count
 * @param {((turn: number) => string) | null} newId What ends the path; left out, a thousand paths come again and again.
 */
function requestAmong(count, newId = null) {
  const rules = Array.from({ length: count }, (_, index) => ({
    name: `r${index}`,
    match: { method: 'GET', path: /** @type {const} */ (`/api/things${index}/:id`) },
    policy: /** @type {const} */ ('api'),
  }))
  const began = process.cpuUsage()
  const ruled = createLimiter({ config: defineConfig({ policies: { api: limit }, rules }) })
  const { user, system } = process.cpuUsage(began)
  process.stdout.write(`${count} rules read and compiled in ${Math.round((user + system) / 1000)} ms\n`)
  // To ten of them, however many there are: what differs is the look-up, not how many routes are busy.
  const paths = subjects.map((_, index) => `/api/things${(index % 10) * (count / 10)}/${index}`)
  return (/** @type {number} */ turn) => {
    const path =
      newId === null ? paths[turn % SUBJECTS] : `/api/things${(turn % 10) * (count / 10)}/${newId(turn)}`
    return ruled.request({ subject: subjectOf(turn), method: 'GET', path: path ?? '/' })
  }
}

/** @param {(turn: number) => Promise<unknown>} ask */
async function nsOf(ask) {
  const { user, system } = process.cpuUsage()
  for (let turn = 0; turn < SLICE; turn++) await ask(turn)
  const after = process.cpuUsage()
  return ((after.user + after.system - user - system) * 1000) / SLICE
}

/** @type {Map<string, number[]>} */
const measured = new Map([...contestants.keys()].map(name => [name, []]))
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, ask] of contestants) {
    const ns = await nsOf(ask)
    // The first rounds are for the compiler.
    if (round > 2) measured.get(name)?.push(ns)
  }
}

const base = measured.get('limiter.check') ?? []
for (const [name, all] of measured) {
  const ratio = ratioOf(all, base).median.toFixed(2)
  process.stdout.write(
    `${name.padEnd(40)} ${Math.round(spreadOf(all).median)} ns, ${ratio} × limiter.check\n`,
  )
}
