import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'
import { openIoredis } from '../../redis/clients.js'
import { RULE } from '../rule.js'

/**
 * Does what users of rate-limiter-flexible write themselves: asks for a key and builds the three headers that other limiters send.
 *
 * @param {import('../entries.js').Entry} entry @param {string} redisUrl
 * @returns {Promise<(key: string) => Promise<Record<string, string>>>}
 */
export async function createFlexible({ where }, redisUrl) {
  const rule = { points: RULE.limit, duration: RULE.windowSeconds }
  const limiter =
    where === 'redis'
      ? new RateLimiterRedis({ ...rule, storeClient: await openIoredis(redisUrl) })
      : new RateLimiterMemory(rule)
  return async key => {
    const { remainingPoints, msBeforeNext } = await limiter.consume(key)
    return {
      'X-RateLimit-Limit': String(RULE.limit),
      'X-RateLimit-Remaining': String(remainingPoints),
      'X-RateLimit-Reset': String(Math.ceil((Date.now() + msBeforeNext) / 1000)),
    }
  }
}
