/**
 * Measures what counting costs a decision: compares a limiter with statistics and one without, on the embedded store and
 * on Redis. Takes a slice of each in turn, in alternating order, in one process and one run, so only the ratios mean
 * anything. The place of its objects in memory makes a limiter a few per cent faster or slower than its twin, so several
 * pairs are made, in alternating order, and a pair without statistics shows the error that remains. The slices include
 * the seconds in which reports are made and written to Redis.
 *
 *   npm run bench:statistics              about a minute
 *   npm run bench:statistics -- --quick   some seconds; rough
 */
import { parseArgs } from 'node:util'
import { createLimiter, slidingWindowCounter } from 'headgate'
import { redisStore } from 'headgate/redis'
import { createStatistics } from 'headgate/statistics'
import { createClient } from 'redis'
import { helpIfAsked } from './harness/help.js'
import { startServer } from './redis/server.js'
import { ratioOf, spreadOf } from './report/statistics.js'

helpIfAsked(import.meta.url)

const { values: options } = parseArgs({ options: { quick: { type: 'boolean', default: false } } })
const PAIRS = options.quick ? 2 : 8
const ROUNDS = options.quick ? 9 : 29
const SUBJECTS = 1_000
const IN_FLIGHT = 64
const policies = { api: slidingWindowCounter({ limit: 1_000_000, window: '1h' }) }
const denying = { api: slidingWindowCounter({ limit: 1, window: '1h' }) }
const subjects = Array.from({ length: SUBJECTS }, (_, index) => /** @type {const} */ (`user:${index}`))

const server = await startServer()
try {
  const embedded = options.quick ? 30_000 : 60_000
  await pair('embedded, both without', embedded, () => createLimiter({ policies }))
  await pair('embedded, allowed', embedded, statistics => createLimiter({ policies, ...statistics }))
  await pair('embedded, denied', embedded, statistics => createLimiter({ policies: denying, ...statistics }))
  await pair('on Redis, 64 in flight', options.quick ? 2_000 : 3_000, statistics =>
    createLimiter({ policies, store: redisStore(createClient({ url: server.url }), statistics) }),
  )
} finally {
  await server.stop()
}

/**
 * @param {string} name
 * @param {number} slice decisions of one in a round
 * @param {(statistics: { statistics?: import('headgate/statistics').Statistics }) => import('headgate').Limiter<'api', never>} make
 */
async function pair(name, slice, make) {
  /** @type {[number[], number[]]} */
  const measured = [[], []]
  for (let made = 0; made < PAIRS; made++) {
    const statistics = createStatistics()
    const stop = statistics.onSecond(() => {})
    const order = made % 2 === 0 ? [0, 1] : [1, 0]
    /** @type {import('headgate').Limiter<'api', never>[]} */
    const limiters = []
    for (const which of order) limiters[which] = make(which === 0 ? {} : { statistics })
    await compare(/** @type {[typeof limiters[0], typeof limiters[0]]} */ (limiters), slice, measured)
    for (const limiter of limiters) await limiter.close()
    stop()
  }
  const { median, q1: low, q3: high } = ratioOf(measured[1], measured[0])
  const ns = measured.map(all => Math.round(spreadOf(all).median))
  const percent = (/** @type {number} */ ratio) => `${((ratio - 1) * 100).toFixed(1)} %`
  process.stdout.write(
    `${name.padEnd(24)} ${ns[0]} ns without, ${ns[1]} ns with: ${percent(median)} more (${percent(low)} to ${percent(high)})\n`,
  )
}

/**
 * @param {[import('headgate').Limiter<'api', never>, import('headgate').Limiter<'api', never>]} limiters
 * @param {number} slice
 * @param {[number[], number[]]} measured
 */
async function compare(limiters, slice, measured) {
  for (let round = 0; round < ROUNDS; round++) {
    /** @type {readonly (0 | 1)[]} */
    const order = round % 2 === 0 ? [0, 1] : [1, 0]
    for (const which of order) {
      const ns = await nsOf(limiters[which], slice)
      // The compiler is still at work during the first rounds.
      if (round > 4) measured[which].push(ns)
    }
  }
}

/** @param {import('headgate').Limiter<'api', never>} limiter @param {number} slice */
async function nsOf(limiter, slice) {
  const before = process.cpuUsage()
  for (let turn = 0; turn < slice; turn += IN_FLIGHT) {
    const waiting = []
    for (let index = 0; index < IN_FLIGHT; index++) {
      waiting.push(limiter.check(subjects[(turn + index) % SUBJECTS] ?? 'user:0', { policy: 'api' }))
    }
    await Promise.all(waiting)
  }
  const { user, system } = process.cpuUsage(before)
  return ((user + system) * 1000) / slice
}
