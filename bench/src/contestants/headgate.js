import { createLimiter, memoryStore, slidingWindowCounter, slidingWindowLog, tokenBucket } from 'headgate'

/** @typedef {import('./contestant.js').Rule} Rule */
/** @typedef {import('./contestant.js').Contestant} Contestant */

/** More than any workload has, so that the store never has to drop a key while we measure. */
const MAX_KEYS = 2_000_000

/** @param {Rule} rule */
export function createHeadgateCounter({ limit, windowSeconds }) {
  return contestant(slidingWindowCounter({ limit, window: windowSeconds }))
}

/** @param {Rule} rule */
export function createHeadgateBucket({ limit, windowSeconds }) {
  return contestant(tokenBucket({ capacity: limit, refillPerSecond: limit / windowSeconds }))
}

/** @param {Rule} rule */
export function createHeadgateLog({ limit, windowSeconds }) {
  return contestant(slidingWindowLog({ limit, window: windowSeconds }))
}

/**
 * @param {import('headgate').Limit} limit
 * @returns {Contestant}
 */
function contestant(limit) {
  const limiter = createLimiter({ store: memoryStore({ maxKeys: MAX_KEYS }), policies: { api: limit } })
  return {
    ask: key => limiter.check(/** @type {`user:${string}`} */ (key), { policy: 'api' }),
    admits: decision => /** @type {import('headgate').Decision} */ (decision).allowed,
    async forget(keys) {
      for (const key of keys) await limiter.reset(/** @type {`user:${string}`} */ (key), { policy: 'api' })
    },
  }
}
