/**
 * The workloads on Redis: keys and limits. Requests come in laps, and a lap's number determines its keys, so that the
 * share of denials is the same for the fastest and the slowest.
 */
import { countOver, createRandom, limitDenying, zipfRanks } from './harness/sequences.js'

/**
 * @typedef {object} Workload
 * @property {(lap: number) => readonly string[]} lap The key of each request of a lap.
 * @property {number} deniedPerLap
 * @property {readonly import('./redis-limiters.js').Rule[]} rules
 */

const PEERS = ['rate-limit-redis', 'rate-limiter-flexible']

/** @type {Readonly<Record<string, { title: string, limiters: readonly string[] }>>} */
export const WORKLOADS = {
  a: { title: '(a) 100,000 keys, windows of 60 s', limiters: ['counter', 'bucket', ...PEERS, 'INCR'] },
  s: { title: '(s) the same, windows of 1 s', limiters: ['counter', ...PEERS] },
  b: {
    title: '(b) 10,000 keys by Zipf, 30 % denied',
    limiters: ['counter', 'bucket', ...PEERS, 'rate-limiter-flexible, inMemoryBlock'],
  },
  e: { title: '(e) four limits', limiters: ['four limits', ...PEERS] },
  log: { title: '(log) 100,000 keys, a log of 100 a minute', limiters: ['log', 'async-ratelimiter'] },
}

const SEED = 20_240_607
const KEYS = 100_000
const UNREACHED = 1_000_000
/** Where a limit is reached, windows outlast the run, so that the number of denials is known. */
const DAY = 86_400

/** @param {string} id @param {number} inFlight @returns {Workload} */
export function createWorkload(id, inFlight) {
  if (id === 'a') return uniform([{ limit: UNREACHED, windowSeconds: 60 }])
  if (id === 's') return uniform([{ limit: UNREACHED, windowSeconds: 1 }])
  if (id === 'log') return uniform([{ limit: 100, windowSeconds: 60 }])
  if (id === 'e')
    return uniform([1, 60, 3_600, DAY].map(windowSeconds => ({ limit: UNREACHED, windowSeconds })))
  // Long enough for a memory of denials to matter, short enough for the slowest to finish a lap.
  if (id === 'b') return zipf(inFlight === 1 ? 1_000 : 10_000)
  throw new Error(`no workload is called '${id}'`)
}

/** Never denied; a lap only fills the time between two looks at the clock. @param {Workload['rules']} rules @returns {Workload} */
function uniform(rules) {
  const random = createRandom(SEED)
  const laps = Array.from({ length: 400 }, () =>
    Array.from({ length: 512 }, () => `user:${Math.floor(random() * KEYS)}`),
  )
  return { lap: lap => laps[lap % laps.length] ?? [], deniedPerLap: 0, rules }
}

/** @param {number} requests @returns {Workload} */
function zipf(requests) {
  const { ranks, counts } = zipfRanks(10_000, requests, createRandom(SEED))
  const limit = limitDenying(counts, 0.3 * requests)
  return {
    lap: lap => Array.from(ranks, rank => `user:${lap}-${rank}`),
    deniedPerLap: countOver(counts, limit),
    rules: [{ limit, windowSeconds: DAY }],
  }
}
