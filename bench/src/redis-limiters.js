/** Limiters on a shared Redis, each called as its own users call it, over node-redis without a timer for each command. */
import AsyncRateLimiter from 'async-ratelimiter'
import { createLimiter, quota, slidingWindowCounter, slidingWindowLog, tokenBucket } from 'headgate'
import { redisStore } from 'headgate/redis'
import { RedisStore } from 'rate-limit-redis'
import { RateLimiterRedis } from 'rate-limiter-flexible'
import { createClient } from 'redis'
import { openClient } from './harness/redis-server.js'

/** @typedef {{ limit: number, windowSeconds: number }} Rule */
/** @typedef {{ url: string, prefix: string, rules: readonly Rule[] }} Setup All rules bind every request. */
/** Says whether one request of `key` is admitted. @typedef {(key: string) => Promise<boolean>} Ask */
/** @typedef {{ ask: Ask, close: () => Promise<void> }} Opened */

/** Longer than any request waits in a run: peers wait as long as it takes, and Redis must decide every request. */
const DEADLINE_MS = 60_000

export const OURS = ['counter', 'quota', 'bucket', 'log', 'four limits']

/** Keeps what was read, so that the compiler cannot leave it out. */
const lastRead = { remaining: 0, resetAfterMs: 0 }

/** By name. @type {Readonly<Record<string, (setup: Setup) => Promise<Opened>>>} */
export const LIMITERS = {
  counter: setup => headgate(setup, counter),
  quota: setup => headgate(setup, ({ limit }) => quota({ limit, per: 'month' })),
  bucket: setup => headgate(setup, bucket),
  log: setup => headgate(setup, log),
  // A burst, then the longer windows.
  'four limits': setup => headgate(setup, (rule, index) => (index === 0 ? bucket(rule) : counter(rule))),

  async 'rate-limit-redis'({ url, prefix, rules }) {
    const client = await openClient(url)
    const stores = await Promise.all(
      rules.map(async ({ limit, windowSeconds }) => {
        const store = new RedisStore({
          sendCommand: (...words) => /** @type {Promise<any>} */ (client.sendCommand(words)),
          prefix: `${prefix}:${windowSeconds}:`,
        })
        // It reads only the window of the middleware's options.
        await store.init(/** @type {Parameters<typeof store.init>[0]} */ ({ windowMs: windowSeconds * 1000 }))
        return /** @type {Ask} */ (async key => (await store.increment(key)).totalHits <= limit)
      }),
    )
    return { ask: allOf(stores), close: () => client.close() }
  },

  'rate-limiter-flexible': setup => flexible(setup, false),
  // As its manual advises against floods: a denied key is denied in the process until its window ends.
  'rate-limiter-flexible, inMemoryBlock': setup => flexible(setup, true),

  /** The log of koa-ratelimit. It is written for ioredis: over node-redis its script is sent by hash. */
  async 'async-ratelimiter'({ url, prefix, rules: [rule] }) {
    const client = await openClient(url)
    // Its types omit the script that it defines on clients.
    const { lua } = /** @type {any} */ (AsyncRateLimiter).defineCommand.ratelimiter
    const sha = String(await client.scriptLoad(lua))
    const limiter = new AsyncRateLimiter({
      db: /** @type {any} */ ({
        /** @param {(string | number)[]} words */
        ratelimiter: (...words) => client.sendCommand(['EVALSHA', sha, '1', ...words.map(String)]),
      }),
      namespace: prefix,
      max: rule?.limit ?? 0,
      duration: (rule?.windowSeconds ?? 0) * 1000,
    })
    return { ask: async id => (await limiter.get({ id })).remaining > 0, close: () => client.close() }
  },

  /** The least a shared counter can cost. */
  async INCR({ url, prefix }) {
    const client = await openClient(url)
    return {
      ask: async key => (await client.sendCommand(['INCR', `${prefix}:${key}`])) !== null,
      close: () => client.close(),
    }
  },

  /** The least a script can cost. */
  async 'empty script'({ url }) {
    const client = await openClient(url)
    const sha = await client.scriptLoad('return 1')
    return {
      ask: async () => Number(await client.sendCommand(['EVALSHA', sha, '0'])) === 1,
      close: () => client.close(),
    }
  },
}

/** @param {Setup} setup @param {boolean} blocks @returns {Promise<Opened>} */
async function flexible({ url, prefix, rules }, blocks) {
  const storeClient = await openClient(url)
  const asks = rules.map(({ limit, windowSeconds }) => {
    const limiter = new RateLimiterRedis({
      storeClient,
      useRedisPackage: true,
      keyPrefix: `${prefix}:${windowSeconds}`,
      points: limit,
      duration: windowSeconds,
      ...(blocks && { inMemoryBlockOnConsumed: limit }),
    })
    return async (/** @type {string} */ key) => {
      try {
        await limiter.consume(key)
        return true
      } catch (rejection) {
        // It rejects with its result where a key is limited.
        if (rejection instanceof Error) throw rejection
        return false
      }
    }
  })
  return { ask: allOf(asks), close: () => storeClient.close() }
}

/** @param {readonly Ask[]} asks @returns {Ask} */
function allOf(asks) {
  const [first] = asks
  if (asks.length === 1 && first !== undefined) return first
  return async key => (await Promise.all(asks.map(ask => ask(key)))).every(Boolean)
}

/** @param {Setup} setup @param {(rule: Rule, index: number) => import('headgate').Limit} limitOf @returns {Promise<Opened>} */
async function headgate({ url, prefix, rules }, limitOf) {
  const store = redisStore(createClient({ url }), { prefix, deadlineMs: DEADLINE_MS })
  await store.ready()
  const limiter = createLimiter({ store, policies: { api: rules.map(limitOf) } })
  return {
    async ask(key) {
      const decision = await limiter.check(key, { policy: 'api' })
      if (decision.source !== 'redis')
        throw new Error(`${key} was decided by '${decision.source}' instead of Redis`)
      // A decision works these out when they are read; peers always do.
      lastRead.remaining = decision.remaining
      lastRead.resetAfterMs = decision.resetAfterMs
      return decision.allowed
    },
    close: () => limiter.close(),
  }
}

/** @param {Rule} rule */
const counter = ({ limit, windowSeconds }) => slidingWindowCounter({ limit, window: `${windowSeconds}s` })

/** @param {Rule} rule */
const bucket = ({ limit, windowSeconds }) =>
  tokenBucket({ capacity: limit, refillPerSecond: limit / windowSeconds })

/** @param {Rule} rule */
const log = ({ limit, windowSeconds }) => slidingWindowLog({ limit, window: `${windowSeconds}s` })
