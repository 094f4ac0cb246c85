/** Limiters in the memory of one process, each called as its own users call it. */
import { MemoryStore } from 'express-rate-limit'
import { createLimiter, memoryStore, slidingWindowCounter, slidingWindowLog, tokenBucket } from 'headgate'
import { RateLimiter } from 'limiter'
import { RateLimiterMemory } from 'rate-limiter-flexible'

/** @typedef {{ limit: number, windowSeconds: number }} Rule */
/**
 * @typedef {object} Limiter
 * @property {(key: string) => Promise<any>} ask One request of `key`. May reject with what is no `Error` to deny it.
 * @property {(answer: any) => boolean} admits
 */

/** More than any run has, so that no key is evicted. */
const MAX_KEYS = 4_000_000

export const OURS = ['counter', 'bucket', 'log']
export const FLOOR = 'bare Map'

/** By name. @type {Readonly<Record<string, (rule: Rule) => Limiter>>} */
export const LIMITERS = {
  counter: ({ limit, windowSeconds }) =>
    headgate(slidingWindowCounter({ limit, window: `${windowSeconds}s` })),
  bucket: ({ limit, windowSeconds }) =>
    headgate(tokenBucket({ capacity: limit, refillPerSecond: limit / windowSeconds })),
  log: ({ limit, windowSeconds }) => headgate(slidingWindowLog({ limit, window: `${windowSeconds}s` })),

  'rate-limiter-flexible'({ limit, windowSeconds }) {
    const limiter = new RateLimiterMemory({ points: limit, duration: windowSeconds })
    return { ask: key => limiter.consume(key), admits: () => true }
  },

  /** The store alone, as the middleware calls it before it compares the hits with the limit. */
  'express-rate-limit'({ limit, windowSeconds }) {
    const store = new MemoryStore()
    // It reads only the window of the middleware's options.
    store.init(/** @type {Parameters<typeof store.init>[0]} */ ({ windowMs: windowSeconds * 1000 }))
    return { ask: key => store.increment(key), admits: ({ totalHits }) => totalHits <= limit }
  },

  /** It limits one thing, so its users keep one for each key. */
  limiter({ limit, windowSeconds }) {
    /** @type {Map<string, RateLimiter>} */
    const limiters = new Map()
    const options = { tokensPerInterval: limit, interval: windowSeconds * 1000, fireImmediately: true }
    return {
      ask(key) {
        let limiter = limiters.get(key)
        if (limiter === undefined) {
          limiter = new RateLimiter(options)
          limiters.set(key, limiter)
        }
        return limiter.removeTokens(1)
      },
      admits: left => left >= 0,
    }
  },

  /** The least a limiter can be: neither bounded nor validated. */
  [FLOOR]({ limit, windowSeconds }) {
    /** @type {Map<string, { used: number, endsAtMs: number }>} */
    const windows = new Map()
    return {
      async ask(key) {
        const nowMs = performance.now()
        let window = windows.get(key)
        if (window === undefined || window.endsAtMs <= nowMs) {
          window = { used: 0, endsAtMs: nowMs + windowSeconds * 1000 }
          windows.set(key, window)
        }
        const resetAfterMs = Math.ceil(window.endsAtMs - nowMs)
        if (window.used >= limit) return { allowed: false, remaining: 0, resetAfterMs }
        window.used++
        return { allowed: true, remaining: limit - window.used, resetAfterMs }
      },
      admits: ({ allowed }) => allowed,
    }
  },
}

/** @param {import('headgate').Limit} limit @returns {Limiter} */
function headgate(limit) {
  const limiter = createLimiter({ store: memoryStore({ maxKeys: MAX_KEYS }), policies: { api: limit } })
  return { ask: key => limiter.check(key, { policy: 'api' }), admits: ({ allowed }) => allowed }
}
