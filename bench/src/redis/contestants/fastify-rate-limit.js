// @ts-expect-error: the store is not part of the plugin's types
import RedisStore from '@fastify/rate-limit/store/RedisStore.js'
import { openIoredis } from '../clients.js'

/**
 * Calls the store alone, as the plugin does, which supports only ioredis. Asks several limits at once.
 *
 * @param {import('./contestant.js').Setup} setup
 * @returns {Promise<import('./contestant.js').Contestant>}
 */
export async function createFastifyRateLimit({ url, rules, prefix }) {
  const redis = await openIoredis(url)
  /** @param {import('../workloads.js').Rule} rule @returns {(key: string) => Promise<boolean>} */
  const counterOf = ({ limit, windowSeconds }) => {
    const store = new RedisStore(false, false, redis, `${prefix}:${windowSeconds}:`)
    return key =>
      new Promise((resolve, reject) => {
        /** @param {Error | null} error @param {{ current: number }} hits */
        const answer = (error, hits) => (error ? reject(error) : resolve(hits.current <= limit))
        store.incr(key, answer, windowSeconds * 1000, limit)
      })
  }
  const [rule, ...others] = rules
  const first = counterOf(rule)
  if (others.length === 0) return { ask: first, admits: Boolean }
  const counters = [first, ...others.map(counterOf)]
  return {
    ask: key => Promise.all(counters.map(count => count(key))),
    admits: allowed => counters.every((_, index) => allowed[index]),
  }
}
