import { RateLimiterMemory } from 'rate-limiter-flexible'

/**
 * Rejects with its result when a key is limited, which the measuring loop catches as its users must.
 *
 * @param {import('./contestant.js').Rule} rule
 * @returns {import('./contestant.js').Contestant}
 */
export function createRateLimiterFlexible({ limit, windowSeconds }) {
  const limiter = new RateLimiterMemory({ points: limit, duration: windowSeconds })
  return {
    ask: key => limiter.consume(key),
    admits: () => true,
    async forget(keys) {
      for (const key of keys) await limiter.delete(key)
    },
  }
}
