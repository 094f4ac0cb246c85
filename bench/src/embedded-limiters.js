/** Limiters in the memory of one process, each called as its own users call it. */
import { MemoryStore } from 'express-rate-limit'
import { createLimiter, memoryStore, slidingWindowCounter, slidingWindowLog, tokenBucket } from 'headgate'
import { RateLimiter } from 'limiter'
import { RateLimiterMemory } from 'rate-limiter-flexible'

/** @typedef {{ limit: number, windowSeconds: number }} Rule */
/** Says whether one request of `key` is admitted. @typedef {(key: string) => Promise<boolean>} Ask */

/** More than any run has, so that no key is evicted. */
const MAX_KEYS = 4_000_000

export const OURS = ['counter', 'bucket', 'log']
export const FLOOR = 'bare Map'

/** By name. @type {Readonly<Record<string, (rule: Rule) => Ask>>} */
export const LIMITERS = {
  counter: ({ limit, windowSeconds }) =>
    headgate(slidingWindowCounter({ limit, window: `${windowSeconds}s` })),
  bucket: ({ limit, windowSeconds }) =>
    headgate(tokenBucket({ capacity: limit, refillPerSecond: limit / windowSeconds })),
  log: ({ limit, windowSeconds }) => headgate(slidingWindowLog({ limit, window: `${windowSeconds}s` })),

  'rate-limiter-flexible'({ limit, windowSeconds }) {
    const limiter = new RateLimiterMemory({ points: limit, duration: windowSeconds })
    return async key => {
      try {
        await limiter.consume(key)
        return true
      } catch (rejection) {
        // It rejects with its result where a key is limited.
        if (rejection instanceof Error) throw rejection
        return false
      }
    }
  },

  /** The store alone, as the middleware calls it before it compares the hits with the limit. */
  'express-rate-limit'({ limit, windowSeconds }) {
    const store = new MemoryStore()
    // It reads only the window of the middleware's options.
    store.init(/** @type {Parameters<typeof store.init>[0]} */ ({ windowMs: windowSeconds * 1000 }))
    return async key => (await store.increment(key)).totalHits <= limit
  },

  /** It limits one thing, so its users keep one for each key. */
  limiter({ limit, windowSeconds }) {
    /** @type {Map<string, RateLimiter>} */
    const limiters = new Map()
    const options = { tokensPerInterval: limit, interval: windowSeconds * 1000, fireImmediately: true }
    return async key => {
      let limiter = limiters.get(key)
      if (limiter === undefined) {
        limiter = new RateLimiter(options)
        limiters.set(key, limiter)
      }
      return (await limiter.removeTokens(1)) >= 0
    }
  },

  /** The least a limiter can be: neither bounded nor validated, and it says nothing about what is left. */
  [FLOOR]({ limit, windowSeconds }) {
    /** @type {Map<string, { used: number, endsAtMs: number }>} */
    const windows = new Map()
    return async key => {
      const nowMs = performance.now()
      let window = windows.get(key)
      if (window === undefined || window.endsAtMs <= nowMs) {
        window = { used: 0, endsAtMs: nowMs + windowSeconds * 1000 }
        windows.set(key, window)
      }
      if (window.used >= limit) return false
      window.used++
      return true
    }
  },
}

/** @param {import('headgate').Limit} limit @returns {Ask} */
function headgate(limit) {
  const limiter = createLimiter({ store: memoryStore({ maxKeys: MAX_KEYS }), policies: { api: limit } })
  return async key => (await limiter.check(`user:${key}`, { policy: 'api' })).allowed
}
