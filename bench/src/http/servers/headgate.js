import { createLimiter, slidingWindowCounter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { redisStore } from 'headgate/redis'
import { RULE } from '../rule.js'

/** @typedef {{ headers: import('../entries.js').Style }} Headers */
/** @typedef {Headers & ({ limiter: import('headgate').Limiter<'api', never>, policy: 'api' } | { limiter: import('headgate').RuleLimiter })} Headgate */

const LEASE = /** @type {const} */ ({ max: 1_000, ttl: '10s' })

/**
 * Returns the options of our adapters in every framework, except `subject`.
 *
 * @param {import('../entries.js').Entry} entry @param {string} redisUrl
 * @returns {Promise<Headgate>}
 */
export async function headgateOptions({ where, who, style = 'legacy' }, redisUrl) {
  const limits = slidingWindowCounter({ limit: RULE.limit, window: RULE.windowSeconds })
  const policies = { api: where === 'redis, leased' ? { limits, lease: LEASE } : limits }
  const store = where === 'memory' ? undefined : await openStore(redisUrl)
  const shared = store === undefined ? {} : { store }
  if (who === 'headgate') {
    return { limiter: createLimiter({ ...shared, policies }), policy: 'api', headers: style }
  }
  const { limit, windowSeconds: window } = RULE
  const config = defineConfig({
    policies: { api: { algorithm: 'sliding-window-counter', limit, window } },
    default: { policy: 'api' },
  })
  return { limiter: createLimiter({ ...shared, config }), headers: style }
}

/** @param {string} redisUrl */
async function openStore(redisUrl) {
  const { createClient } = await import('redis')
  const store = redisStore(createClient({ url: redisUrl }), { prefix: 'http', deadlineMs: 5_000 })
  await store.ready()
  return store
}
