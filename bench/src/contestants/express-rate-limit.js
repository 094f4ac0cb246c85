import { MemoryStore } from 'express-rate-limit'

/**
 * The store alone, as the middleware asks it: the middleware then compares the hits with the limit.
 *
 * @param {import('./contestant.js').Rule} rule
 * @returns {import('./contestant.js').Contestant}
 */
export function createExpressRateLimit({ limit, windowSeconds }) {
  const store = new MemoryStore()
  // The store reads nothing of the middleware's options but the window.
  store.init(/** @type {Parameters<typeof store.init>[0]} */ ({ windowMs: windowSeconds * 1000 }))
  return {
    ask: key => store.increment(key),
    admits: hits => /** @type {{ totalHits: number }} */ (hits).totalHits <= limit,
    forget: () => store.resetAll(),
  }
}
