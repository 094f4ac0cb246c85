import { MemoryStore } from 'express-rate-limit'

/**
 * Calls the store alone, as the middleware does before it compares the hits with the limit.
 *
 * @param {import('./contestant.js').Rule} rule
 * @returns {import('./contestant.js').Contestant}
 */
export function createExpressRateLimit({ limit, windowSeconds }) {
  const store = new MemoryStore()
  // The store reads only the window of the middleware's options.
  store.init(/** @type {Parameters<typeof store.init>[0]} */ ({ windowMs: windowSeconds * 1000 }))
  return {
    ask: key => store.increment(key),
    admits: hits => /** @type {{ totalHits: number }} */ (hits).totalHits <= limit,
    forget: () => store.resetAll(),
  }
}
