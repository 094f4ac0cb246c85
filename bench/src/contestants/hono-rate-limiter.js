import { MemoryStore } from 'hono-rate-limiter'

/**
 * The store alone, as the middleware asks it: awaited, then the hits are compared with the limit.
 *
 * @param {import('./contestant.js').Rule} rule
 * @returns {import('./contestant.js').Contestant}
 */
export function createHonoRateLimiter({ limit, windowSeconds }) {
  const store = new MemoryStore()
  // The store reads nothing of the middleware's options but the window.
  store.init(/** @type {Parameters<typeof store.init>[0]} */ ({ windowMs: windowSeconds * 1000 }))
  return {
    ask: key => store.increment(key),
    admits: hits => /** @type {{ totalHits: number }} */ (hits).totalHits <= limit,
    forget: () => store.resetAll(),
  }
}
