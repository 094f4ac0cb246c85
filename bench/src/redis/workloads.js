/**
 * The workloads on a shared Redis: keys, their requests, and the limits. Requests come in laps, and a lap's number
 * determines its keys. A slice holds as many laps as a contestant manages, so the share of denials is the same for the
 * fastest and the slowest.
 */
import { countOver, createRandom, limitDenying, zipfRanks } from '../sequences.js'

/** `bound` is for counting, not for timing; `plain` is (d) without leases. @typedef {'a' | 'a1s' | 'a1h' | 'b' | 'c' | 'd' | 'e' | 'log' | 'bound' | 'plain'} WorkloadId */
/** @typedef {import('../contestants/contestant.js').Rule} Rule */
/** @typedef {readonly [Rule, ...Rule[]]} Rules */

/**
 * @typedef {object} Workload
 * @property {(lap: number) => readonly string[]} lap The key of each request of a lap.
 * @property {number | null} deniedPerLap Requests of a lap over the limit; `null` if other processes ask too.
 * @property {Rules} rules All of them bind every request.
 * @property {boolean} leased Whether Headgate may take leases.
 */

/** @type {Readonly<Record<string, string>>} */
export const TITLES = {
  a: '100,000 keys alike, never limited, windows of 60 s',
  a1s: 'the same with windows of 1 s',
  a1h: 'the same with windows of 1 h',
  b: '10,000 keys, a few of them busy (zipf), 30 % denied',
  c: 'one hot key, 99 % denied',
  d: 'one hot key, always allowed',
  e: 'four limits in one decision: burst, minute, hour and day',
  log: '100,000 keys alike, a log of 100 a minute',
}

/** @type {readonly WorkloadId[]} */
export const WORKLOAD_IDS = ['a', 'a1s', 'a1h', 'b', 'c', 'd', 'e', 'log']

export const UNIFORM_KEYS = 100_000
/** The limit for all processes together on the hot key whose admissions are counted, and the requests of each. */
export const BOUND = { limit: 100_000, asksEach: 80_000 }

const SEED = 20_240_607
/** If a limit is reached, windows outlast the run, so that the number of denials is known. */
const WINDOW_SECONDS = 86_400
const UNREACHED = 1_000_000_000
/** If nothing is denied, a lap only fills the time between two looks at the clock. */
const OPEN_LAP = 512
/** If a limit must be reached: enough requests for a deny cache to matter, few enough for the slowest to finish. */
const LIMITED_LAP = { inTurn: 1_000, inFlight: 10_000 }

/**
 * @param {WorkloadId} id
 * @param {number} inFlight Requests under way at any moment.
 * @returns {Workload}
 */
export function createWorkload(id, inFlight) {
  const limitedLap = inFlight === 1 ? LIMITED_LAP.inTurn : LIMITED_LAP.inFlight
  switch (id) {
    case 'a':
      return uniform(UNIFORM_KEYS, [{ limit: UNREACHED, windowSeconds: 60 }])
    case 'a1s':
      return uniform(UNIFORM_KEYS, [{ limit: UNREACHED, windowSeconds: 1 }])
    case 'a1h':
      return uniform(UNIFORM_KEYS, [{ limit: UNREACHED, windowSeconds: 3_600 }])
    case 'log':
      return uniform(UNIFORM_KEYS, [{ limit: 100, windowSeconds: 60 }])
    case 'b':
      return zipf(10_000, limitedLap, 0.3)
    case 'c':
      return hot(limitedLap, 0.99)
    case 'd':
      return { ...uniform(1, [{ limit: UNREACHED, windowSeconds: WINDOW_SECONDS }]), leased: true }
    case 'plain':
      return { ...createWorkload('d', inFlight), leased: false }
    case 'e':
      return uniform(10_000, [
        { limit: 1_000_000, windowSeconds: 1 },
        { limit: 10_000_000, windowSeconds: 60 },
        { limit: 100_000_000, windowSeconds: 3_600 },
        { limit: UNREACHED, windowSeconds: WINDOW_SECONDS },
      ])
    case 'bound':
      return {
        lap: () => new Array(BOUND.asksEach).fill('user:0'),
        deniedPerLap: null,
        rules: [{ limit: BOUND.limit, windowSeconds: WINDOW_SECONDS }],
        leased: true,
      }
  }
}

/** Returns every key of (a) once, in order. */
export function uniformKeys() {
  return Array.from({ length: UNIFORM_KEYS }, (_, index) => `user:${index}`)
}

/** @param {number} keyCount @param {Rules} rules @returns {Workload} */
function uniform(keyCount, rules) {
  const random = createRandom(SEED)
  const laps = Array.from({ length: 400 }, () =>
    Array.from({ length: OPEN_LAP }, () => `user:${Math.floor(random() * keyCount)}`),
  )
  return { lap: lap => at(laps, lap % laps.length), deniedPerLap: 0, rules, leased: false }
}

/** @param {number} keyCount @param {number} count @param {number} denied @returns {Workload} */
function zipf(keyCount, count, denied) {
  const { ranks, counts } = zipfRanks(keyCount, count, createRandom(SEED))
  const limit = limitDenying(counts, denied * count)
  return {
    lap: lap => Array.from(ranks, rank => `user:${lap}-${rank}`),
    deniedPerLap: countOver(counts, limit),
    rules: [{ limit, windowSeconds: WINDOW_SECONDS }],
    leased: false,
  }
}

/** @param {number} count @param {number} denied @returns {Workload} */
function hot(count, denied) {
  const limit = Math.round(count * (1 - denied))
  return {
    lap: lap => new Array(count).fill(`user:${lap}`),
    deniedPerLap: count - limit,
    rules: [{ limit, windowSeconds: WINDOW_SECONDS }],
    leased: false,
  }
}

/** @template T @param {readonly T[]} list @param {number} index */
function at(list, index) {
  return /** @type {T} */ (list[index])
}
