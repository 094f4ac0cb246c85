import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'
import { openIoredis } from '../../redis/clients.js'
import { RULE } from '../rule.js'

/**
 * The code users of rate-limiter-flexible write themselves: it asks for a key and makes the three headers that other limiters send.
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
