/**
 * The simplest possible limiter: a Map, the arithmetic, one look at the clock and a small answer behind a promise.
 * It bounds, validates and refunds nothing. It shows the cost of the language; it is not a product.
 */

/** @typedef {{ allowed: boolean, remaining: number, retryAfterMs: number, resetAfterMs: number }} Answer */
/** @typedef {import('./contestant.js').Rule} Rule */
/** @typedef {import('./contestant.js').Contestant} Contestant */

/**
 * Keeps a count and the end of its window for each key.
 *
 * @param {Rule} rule
 * @returns {Contestant}
 */
export function createBareWindow({ limit, windowSeconds }) {
  /** @type {Map<string, { used: number, endsAtMs: number }>} */
  const windows = new Map()
  const windowMs = windowSeconds * 1000

  /** @param {string} key @returns {Promise<Answer>} */
  async function ask(key) {
    const nowMs = performance.now()
    let window = windows.get(key)
    if (window === undefined) {
      window = { used: 0, endsAtMs: nowMs + windowMs }
      windows.set(key, window)
    } else if (window.endsAtMs <= nowMs) {
      window.used = 0
      window.endsAtMs = nowMs + windowMs
    }
    const resetAfterMs = Math.ceil(window.endsAtMs - nowMs)
    if (window.used >= limit)
      return { allowed: false, remaining: 0, retryAfterMs: resetAfterMs, resetAfterMs }
    window.used++
    return { allowed: true, remaining: limit - window.used, retryAfterMs: 0, resetAfterMs }
  }

  return { ask, admits, forget: () => windows.clear() }
}

/**
 * Keeps for each key its tokens and the time at which they were counted.
 *
 * @param {Rule} rule
 * @returns {Contestant}
 */
export function createBareBucket({ limit, windowSeconds }) {
  /** @type {Map<string, { tokens: number, countedAtMs: number }>} */
  const buckets = new Map()
  const refillPerMs = limit / (windowSeconds * 1000)

  /** @param {string} key @returns {Promise<Answer>} */
  async function ask(key) {
    const nowMs = performance.now()
    let bucket = buckets.get(key)
    if (bucket === undefined) {
      bucket = { tokens: limit, countedAtMs: nowMs }
      buckets.set(key, bucket)
    }
    const tokens = Math.min(limit, bucket.tokens + (nowMs - bucket.countedAtMs) * refillPerMs)
    const allowed = tokens >= 1
    const left = allowed ? tokens - 1 : tokens
    if (allowed) {
      bucket.tokens = left
      bucket.countedAtMs = nowMs
    }
    return {
      allowed,
      remaining: Math.floor(left),
      retryAfterMs: allowed ? 0 : Math.ceil((1 - tokens) / refillPerMs),
      resetAfterMs: Math.ceil((limit - left) / refillPerMs),
    }
  }

  return { ask, admits, forget: () => buckets.clear() }
}

/** @param {unknown} answer */
function admits(answer) {
  return /** @type {Answer} */ (answer).allowed
}
