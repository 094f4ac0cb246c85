import { Ratelimit } from '@upstash/ratelimit'
import { openUpstashClient } from './upstash-client.js'

/** @typedef {import('./contestant.js').Setup} Setup */

/** @param {Setup} setup */
export function createUpstashSlidingWindow(setup) {
  return contestant(setup, ({ limit, windowSeconds }) => Ratelimit.slidingWindow(limit, `${windowSeconds} s`))
}

/** @param {Setup} setup */
export function createUpstashTokenBucket(setup) {
  return contestant(setup, ({ limit, windowSeconds }) =>
    Ratelimit.tokenBucket(limit, `${windowSeconds} s`, limit),
  )
}

/**
 * Remembers denials in the process by default. The tuned one also sets no timer for a request.
 *
 * @param {Setup} setup
 * @param {(rule: import('../workloads.js').Rule) => ReturnType<typeof Ratelimit.slidingWindow>} algorithm
 * @returns {Promise<import('./contestant.js').Contestant>}
 */
async function contestant({ url, client, rules, prefix }, algorithm) {
  const redis = await openUpstashClient(client, url)
  /** @param {import('../workloads.js').Rule} rule */
  const limiterOf = rule =>
    new Ratelimit({
      redis: /** @type {import('@upstash/redis').Redis} */ (/** @type {unknown} */ (redis)),
      prefix: `${prefix}:${rule.windowSeconds}`,
      limiter: algorithm(rule),
      ...(client === 'node-redis, tuned' && { timeout: 0 }),
    })
  const [rule, ...others] = rules
  const first = limiterOf(rule)
  if (others.length === 0) return { ask: key => first.limit(key), admits: answer => answer.success }
  const limiters = [first, ...others.map(limiterOf)]
  return {
    ask: key => Promise.all(limiters.map(limiter => limiter.limit(key))),
    admits: answers => limiters.every((_, index) => answers[index].success),
  }
}
