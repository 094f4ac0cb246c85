import { RateLimiter } from 'limiter'

/** @typedef {import('./contestant.js').Rule} Rule */
/** @typedef {import('./contestant.js').Contestant} Contestant */

/**
 * Uses its promise API, set to deny instead of waiting: −1 is a denial.
 *
 * @param {Rule} rule
 * @returns {Contestant}
 */
export function createLimiterPromise(rule) {
  const { limiterOf, forget } = limitersByKey(rule)
  return {
    ask: key => limiterOf(key).removeTokens(1),
    admits: left => /** @type {number} */ (left) >= 0,
    forget,
  }
}

/**
 * Uses its synchronous API, which answers only with a boolean.
 *
 * @param {Rule} rule
 * @returns {Contestant}
 */
export function createLimiterSync(rule) {
  const { limiterOf, forget } = limitersByKey(rule)
  return {
    ask: key => limiterOf(key).tryRemoveTokens(1),
    admits: removed => /** @type {boolean} */ (removed),
    forget,
  }
}

/** The library limits one thing, so its users keep one limiter for each key. @param {Rule} rule */
function limitersByKey({ limit, windowSeconds }) {
  /** @type {Map<string, RateLimiter>} */
  const limiters = new Map()
  const options = { tokensPerInterval: limit, interval: windowSeconds * 1000, fireImmediately: true }

  /** @param {string} key */
  function limiterOf(key) {
    let limiter = limiters.get(key)
    if (limiter === undefined) {
      limiter = new RateLimiter(options)
      limiters.set(key, limiter)
    }
    return limiter
  }

  return { limiterOf, forget: () => limiters.clear() }
}
