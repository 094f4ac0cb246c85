import { RedisStore } from 'rate-limit-redis'
import { openSender } from '../clients.js'

/**
 * Calls the store of express-rate-limit as the middleware does before it compares the hits with the limit. An app needs
 * one middleware for each limit; here all limits are even asked at once.
 *
 * @param {import('./contestant.js').Setup} setup
 * @returns {Promise<import('./contestant.js').Contestant>}
 */
export async function createRateLimitRedis({ url, client, rules, prefix }) {
  const send = await openSender(client, url)
  /** @param {import('../workloads.js').Rule} rule */
  async function counterOf({ limit, windowSeconds }) {
    const store = new RedisStore({ sendCommand: send, prefix: `${prefix}:${windowSeconds}:` })
    // The store reads only the window of the middleware's options.
    await store.init(/** @type {Parameters<typeof store.init>[0]} */ ({ windowMs: windowSeconds * 1000 }))
    return { store, limit }
  }
  const [rule, ...others] = rules
  const first = await counterOf(rule)
  if (others.length === 0)
    return { ask: key => first.store.increment(key), admits: hits => hits.totalHits <= first.limit }
  const counters = [first, ...(await Promise.all(others.map(counterOf)))]
  return {
    ask: key => Promise.all(counters.map(({ store }) => store.increment(key))),
    admits: all => counters.every(({ limit }, index) => all[index].totalHits <= limit),
  }
}
