import { RateLimiterRedis, RateLimiterUnion } from 'rate-limiter-flexible'
import { openIoredis, openNodeRedis } from '../clients.js'

/** @typedef {import('./contestant.js').Setup} Setup */

/** Rejects with its result when a key is limited. @param {Setup} setup */
export function createRateLimiterFlexible(setup) {
  return contestant(setup, false)
}

/** Uses `inMemoryBlockOnConsumed`, as its manual advises against floods. @param {Setup} setup */
export function createRateLimiterFlexibleBlocking(setup) {
  return contestant(setup, true)
}

/** @param {Setup} setup @param {boolean} blocking @returns {Promise<import('./contestant.js').Contestant>} */
async function contestant({ url, client, rules, prefix }, blocking) {
  const useRedisPackage = client !== 'ioredis'
  const storeClient = useRedisPackage
    ? await openNodeRedis(url, { tuned: client === 'node-redis, tuned' })
    : await openIoredis(url)
  /** @param {import('../workloads.js').Rule} rule */
  const limiterOf = ({ limit, windowSeconds }) =>
    new RateLimiterRedis({
      storeClient,
      useRedisPackage,
      keyPrefix: `${prefix}:${windowSeconds}`,
      points: limit,
      duration: windowSeconds,
      ...(blocking && { inMemoryBlockOnConsumed: limit }),
    })
  const [rule, ...others] = rules
  const limiter =
    others.length === 0 ? limiterOf(rule) : new RateLimiterUnion(limiterOf(rule), ...others.map(limiterOf))
  return { ask: key => limiter.consume(key), admits: () => true }
}
