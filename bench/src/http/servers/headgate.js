import { createLimiter, slidingWindowCounter } from 'headgate'
import { redisStore } from 'headgate/redis'
import { RULE } from '../rule.js'

/** The limiter of all three frameworks. @param {import('../entries.js').Where} where @param {string} redisUrl */
export async function createHeadgate(where, redisUrl) {
  const policies = { api: slidingWindowCounter({ limit: RULE.limit, window: RULE.windowSeconds }) }
  if (where === 'memory') return createLimiter({ policies })
  const { createClient } = await import('redis')
  const store = redisStore(createClient({ url: redisUrl }), { prefix: 'http', deadlineMs: 5_000 })
  await store.ready()
  return createLimiter({ store, policies })
}
