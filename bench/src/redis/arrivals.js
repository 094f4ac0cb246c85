import { spreadOf } from '../report/statistics.js'

/** @typedef {{ id: string, p50Ms: number, p99Ms: number, nodeCpu: number, redisCpu: number }} Arrival */

export const ARRIVALS_PER_SECOND = 10_000

const SHOWN = [
  'headgate, sliding-window counter · node-redis',
  'headgate, token bucket · node-redis',
  'rate-limiter-flexible · ioredis',
  'rate-limiter-flexible · node-redis',
  'rate-limit-redis (express-rate-limit) · ioredis',
  'rate-limit-redis (express-rate-limit) · node-redis, tuned',
  '@upstash/ratelimit, sliding window · node-redis, tuned',
  'bare INCR · node-redis, tuned',
]

/**
 * Measures how long a request waits when requests come at random moments, at a rate everyone can keep up with.
 *
 * @param {import('./rounds.js').Field} field
 * @param {{ rounds: number, seconds: number }} order
 * @param {(step: string) => void} tell
 * @returns {Promise<Arrival[]>}
 */
export async function measureArrivals(field, { rounds, seconds }, tell) {
  /** @type {Map<string, import('./rounds.js').Slice[]>} */
  const slices = new Map(SHOWN.map(id => [id, []]))
  for (let round = 0; round < rounds; round++) {
    for (const id of SHOWN) {
      tell(`round ${round + 1} of ${rounds}: ${id}`)
      const order = { workload: /** @type {const} */ ('a'), inFlight: 1, seconds }
      slices.get(id)?.push(await field.slice(id, { ...order, arrivalsPerSecond: ARRIVALS_PER_SECOND }))
    }
  }
  return [...slices].map(([id, list]) => ({
    id,
    p50Ms: spreadOf(list.map(slice => slice.p50Ms)).median,
    p99Ms: spreadOf(list.map(slice => slice.p99Ms)).median,
    nodeCpu: spreadOf(list.map(slice => (slice.cpuSeconds / slice.requests) * 1e6)).median,
    redisCpu: spreadOf(list.map(slice => (slice.redisCpuSeconds / slice.requests) * 1e6)).median,
  }))
}
