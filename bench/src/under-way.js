/**
 * Measures how much a place and a reservation add to a check, on the embedded store and on Redis, and how much finding
 * an upstream's capacity adds to a call. Takes a slice of each in turn, in one process and one run, so only the ratios
 * to the plain check mean anything. Counts the processor time of this process alone.
 *
 *   npm run bench:under-way              half a minute
 *   npm run bench:under-way -- --quick   some seconds; rough
 */
import { parseArgs } from 'node:util'
import { concurrency, createLimiter, slidingWindowCounter } from 'headgate'
import { adaptiveConcurrency } from 'headgate/outbound'
import { redisStore } from 'headgate/redis'
import { createClient } from 'redis'
import { helpIfAsked } from './harness/help.js'
import { startServer } from './redis/server.js'
import { ratioOf, spreadOf } from './report/statistics.js'

helpIfAsked(import.meta.url)

const { values: options } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const ROUNDS = options.quick ? 9 : 29
/** The compiler is still at work during these rounds. */
const WARM_UP = 3
const SUBJECTS = 1_000
const IN_FLIGHT = 64

const rate = slidingWindowCounter({ limit: 4_000_000_000, window: '1h' })
const policies = {
  plain: rate,
  place: concurrency({ limit: 1_000 }),
  both: [rate, concurrency({ limit: 1_000 })],
}
const subjects = Array.from({ length: SUBJECTS }, (_, index) => /** @type {const} */ (`user:${index}`))

/** @typedef {import('headgate').Limiter<keyof typeof policies, never>} Limiter */
/** @typedef {import('headgate').SubjectInput} Subject */

/** The work for one request, by name. @type {readonly (readonly [string, (limiter: Limiter, subject: Subject) => Promise<unknown>])[]} */
const ROWS = [
  ['check', (limiter, subject) => limiter.check(subject, { policy: 'plain' })],
  ['check of a cost', (limiter, subject) => limiter.check(subject, { policy: 'plain', cost: 10 })],
  ['place, released', (limiter, subject) => checkAndRelease(limiter, subject, 'place')],
  ['rate and place, released', (limiter, subject) => checkAndRelease(limiter, subject, 'both')],
  ['reserve, settled for as much', (limiter, subject) => reserveAndSettle(limiter, subject, 10)],
  ['reserve, settled for less', (limiter, subject) => reserveAndSettle(limiter, subject, 4)],
  ['reserve, settled for more', (limiter, subject) => reserveAndSettle(limiter, subject, 12)],
  ['check, then refunded', checkAndRefund],
]

const server = await startServer()
try {
  await compare('embedded', options.quick ? 6_400 : 12_800, createLimiter({ policies }))
  const client = createClient({ url: server.url })
  await client.connect()
  const store = redisStore(client, { deadlineMs: 5_000 })
  await compare('on Redis, 64 in flight', options.quick ? 1_280 : 2_560, createLimiter({ policies, store }))
  await client.close()
} finally {
  await server.stop()
}
measureAdaptive()

/** @param {Limiter} limiter @param {Subject} subject @param {'place' | 'both'} policy */
async function checkAndRelease(limiter, subject, policy) {
  const decision = await limiter.check(subject, { policy })
  await decision.release()
}

/** @param {Limiter} limiter @param {Subject} subject @param {number} actual */
async function reserveAndSettle(limiter, subject, actual) {
  const { settle } = await limiter.reserve(subject, { policy: 'plain', cost: 10 })
  await settle(actual)
}

/** @param {Limiter} limiter @param {Subject} subject */
async function checkAndRefund(limiter, subject) {
  await limiter.refund(await limiter.check(subject, { policy: 'plain' }))
}

/** @param {string} where @param {number} slice @param {Limiter} limiter */
async function compare(where, slice, limiter) {
  /** @type {number[][]} */
  const measured = ROWS.map(() => [])
  for (let round = 0; round < ROUNDS; round++) {
    for (const [index, [, work]] of ROWS.entries()) {
      const ns = await nsOf(slice, subject => work(limiter, subject))
      if (round >= WARM_UP) measured[index]?.push(ns)
    }
  }
  await limiter.close()
  const [plain = []] = measured
  process.stdout.write(`\n${where}\n`)
  for (const [index, [name]] of ROWS.entries()) {
    const all = measured[index] ?? []
    const ns = Math.round(spreadOf(all).median).toLocaleString('en')
    const { median, q1, q3 } = ratioOf(all, plain)
    const ratio = `${median.toFixed(2)} × a check (${q1.toFixed(2)} to ${q3.toFixed(2)})`
    process.stdout.write(`  ${name.padEnd(30)} ${ns.padStart(9)} ns  ${ratio}\n`)
  }
}

/** @param {number} slice @param {(subject: Subject) => Promise<unknown>} work */
async function nsOf(slice, work) {
  const before = process.cpuUsage()
  for (let turn = 0; turn < slice; turn += IN_FLIGHT) {
    const waiting = []
    for (let index = 0; index < IN_FLIGHT; index++) {
      waiting.push(work(subjects[(turn + index) % SUBJECTS] ?? 'user:0'))
    }
    await Promise.all(waiting)
  }
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1000) / slice
}

/** Takes and leaves a place at an upstream while 50 others are under way. */
function measureAdaptive() {
  const upstream = adaptiveConcurrency({ floor: 100, ceiling: 1_000 })
  for (let index = 0; index < 50; index++) upstream.enter()
  const times = []
  for (let round = 0; round < ROUNDS; round++) {
    const before = process.cpuUsage()
    for (let index = 0; index < 200_000; index++) upstream.enter()?.('answered')
    const { user, system } = process.cpuUsage(before)
    if (round >= WARM_UP) times.push(((user + system) * 1000) / 200_000)
  }
  const ns = Math.round(spreadOf(times).median)
  process.stdout.write(`\nan upstream's place, taken and left: ${ns} ns\n`)
}
