import { createLimiter, slidingWindowCounter, slidingWindowLog, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { CLUSTER } from '../cluster.js'
import { leasesAreKnown, withLease } from './lease.js'

/** @typedef {import('./contestant.js').Setup} Setup */
/** @typedef {import('./contestant.js').Contestant} Contestant */
/** @typedef {import('headgate').Limit} Limit */

/** Longer than any request waits in a slice: peers have no deadline, and Redis must decide every request. */
const DEADLINE_MS = 5_000

/** @param {Setup} setup */
export function createHeadgateCounter(setup) {
  // If there are several limits, the first is the burst.
  const [first, ...others] = setup.rules
  return contestant(setup, others.length === 0 ? [counter(first)] : [bucket(first), ...others.map(counter)])
}

/** @param {Setup} setup */
export function createHeadgateBucket(setup) {
  return contestant(setup, setup.rules.map(bucket))
}

/** @param {Setup} setup */
export function createHeadgateLog(setup) {
  return contestant(setup, setup.rules.map(log))
}

/** Returns the limits of a tier with a burst: a log and a bucket for the minute, counters for the rest. @param {Setup} setup */
export function createHeadgateTier(setup) {
  const [, minute, ...others] = setup.rules
  if (minute === undefined) throw new Error('a tier has a minute')
  return contestant(setup, [log(minute), bucket(minute), ...others.map(counter)])
}

/** @param {import('../workloads.js').Rule} rule */
function log({ limit, windowSeconds }) {
  return slidingWindowLog({ limit, window: windowSeconds })
}

/** @param {import('../workloads.js').Rule} rule */
function counter({ limit, windowSeconds }) {
  return slidingWindowCounter({ limit, window: windowSeconds })
}

/** @param {import('../workloads.js').Rule} rule */
function bucket({ limit, windowSeconds }) {
  return tokenBucket({ capacity: limit, refillPerSecond: limit / windowSeconds })
}

/** Keeps the values read, so that the compiler cannot remove the reads. */
export const heard = { units: 0, ms: 0 }

/** @param {Setup} setup @param {readonly Limit[]} limits @returns {Promise<Contestant>} */
async function contestant({ url, client, prefix, leased }, limits) {
  const store = redisStore(await clientOf(url, client), { prefix, deadlineMs: DEADLINE_MS })
  await store.ready()
  const policy = leased && leasesAreKnown() ? withLease(limits) : limits
  const limiter = createLimiter({ store, policies: { api: policy } })
  let strayed = 0
  return {
    ask: key => limiter.check(/** @type {`user:${string}`} */ (key), { policy: 'api' }),
    admits(answer) {
      const { allowed, remaining, retryAfterMs, resetAfterMs, source } =
        /** @type {import('headgate').Decision} */ (answer)
      // A decision computes header values when they are read.
      heard.units = remaining
      heard.ms = resetAfterMs + (retryAfterMs ?? 0)
      if (source === 'local' || source === 'open' || source === 'closed') strayed++
      return allowed
    },
    strayed: () => strayed,
  }
}

/** @param {string} url @param {import('../clients.js').ClientKind} kind The store makes a connection of its own of it. */
async function clientOf(url, kind) {
  if (kind === 'ioredis') {
    const { Redis } = await import('ioredis')
    return new Redis(url, { lazyConnect: true })
  }
  const { createClient, createCluster } = await import('redis')
  if (!url.startsWith(CLUSTER)) return createClient({ url })
  return createCluster({ rootNodes: [{ url: url.replace(CLUSTER, 'redis:') }] })
}
