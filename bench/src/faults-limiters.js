/**
 * Limiters, each on its own ioredis client and set up for a failing Redis as its manual advises. `check` resolves to
 * whether the request may pass and whether Redis decided it. It rejects only when the limiter itself failed.
 *
 * @typedef {{ admitted: boolean, byRedis: boolean }} Outcome
 * @typedef {{ check: (subject: string) => Promise<Outcome>, close: () => Promise<void> | void }} Limiter
 * @typedef {{ limit: number, windowSeconds: number }} Rule
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { rateLimit } from 'express-rate-limit'
import { createLimiter, slidingWindowLog } from 'headgate'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis'
import { RedisStore } from 'rate-limit-redis'
import { RateLimiterMemory, RateLimiterRedis } from 'rate-limiter-flexible'

/** @type {Readonly<Record<string, (port: number, rule: Rule) => Promise<Limiter>>>} */
export const LIMITERS = {
  headgate: openHeadgate,
  'rate-limiter-flexible, insured': openFlexible,
  'express-rate-limit, passOnStoreError': openExpress,
}

/** @param {number} port @param {Rule} rule @returns {Promise<Limiter>} */
async function openHeadgate(port, { limit, windowSeconds }) {
  const client = new Redis({ port, lazyConnect: true })
  const store = redisStore(client, { onWarning: () => {}, logEveryMs: 86_400_000 })
  const policies = { api: slidingWindowLog({ limit, window: `${windowSeconds}s` }) }
  const limiter = createLimiter({ store, policies })
  await store.ready()
  return {
    async check(subject) {
      const { allowed, source } = await limiter.check(`user:${subject}`, { policy: 'api' })
      return { admitted: allowed, byRedis: source === 'redis' }
    },
    close: () => limiter.close(),
  }
}

/** The request in flight, to be marked as decided without Redis. @type {AsyncLocalStorage<{ byRedis: boolean }>} */
const inFlight = new AsyncLocalStorage()
const withoutRedis = () => {
  const request = inFlight.getStore()
  if (request !== undefined) request.byRedis = false
}

/** A limiter in memory takes over when Redis answers with an error. @param {number} port @param {Rule} rule */
async function openFlexible(port, { limit, windowSeconds }) {
  // Its manual says to disable the offline queue: otherwise nothing fails while there is no connection.
  const client = await connected(new Redis({ port, enableOfflineQueue: false, lazyConnect: true }))
  const rule = { points: limit, duration: windowSeconds }
  const insuranceLimiter = new RateLimiterMemory(rule)
  const consume = insuranceLimiter.consume.bind(insuranceLimiter)
  insuranceLimiter.consume = (...args) => {
    withoutRedis()
    return consume(...args)
  }
  const limiter = new RateLimiterRedis({ storeClient: client, insuranceLimiter, ...rule })
  return limiterOf(client, async subject => {
    try {
      await limiter.consume(subject)
      return true
    } catch (rejection) {
      if (rejection instanceof Error) throw rejection
      return false
    }
  })
}

/** Requests pass when the store answers with an error. @param {number} port @param {Rule} rule */
async function openExpress(port, { limit, windowSeconds }) {
  const client = await connected(new Redis({ port, lazyConnect: true }))
  class WatchedStore extends RedisStore {
    /** @override @param {string} key */
    async increment(key) {
      try {
        return await super.increment(key)
      } catch (error) {
        withoutRedis()
        throw error
      }
    }
  }
  const store = new WatchedStore({
    sendCommand: (command, ...args) =>
      /** @type {Promise<import('rate-limit-redis').RedisReply>} */ (client.call(command, ...args)),
  })
  /** @typedef {{ subject: string, settle(admitted: boolean): void }} Asking */
  const middleware = rateLimit({
    store,
    limit,
    windowMs: windowSeconds * 1000,
    passOnStoreError: true,
    validate: false,
    legacyHeaders: false,
    standardHeaders: false,
    keyGenerator: request => /** @type {Asking} */ (/** @type {unknown} */ (request)).subject,
    handler: request => /** @type {Asking} */ (/** @type {unknown} */ (request)).settle(false),
  })
  return limiterOf(
    client,
    subject =>
      new Promise((resolve, reject) => {
        const request = /** @type {Parameters<typeof middleware>[0]} */ (
          /** @type {unknown} */ ({ subject, settle: resolve })
        )
        const response = /** @type {Parameters<typeof middleware>[1]} */ ({})
        Promise.resolve(
          middleware(request, response, error => (error ? reject(error) : resolve(true))),
        ).catch(reject)
      }),
  )
}

/** @param {Redis} client @param {(subject: string) => Promise<boolean>} ask @returns {Limiter} */
function limiterOf(client, ask) {
  return {
    async check(subject) {
      const request = { byRedis: true }
      const admitted = await inFlight.run(request, () => ask(subject))
      return { admitted, byRedis: request.byRedis }
    },
    close: () => client.disconnect(),
  }
}

/** @param {Redis} client */
async function connected(client) {
  client.on('error', () => {})
  await client.connect()
  return client
}
