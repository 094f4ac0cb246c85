/** What a caller gets back by the status of its responses is bounded: in this process, and by all processes on one Redis. */
import { Redis } from 'ioredis'
import { afterEach, describe, expect, it } from 'vitest'
import { slidingWindowCounter } from '../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../src/algorithms/token-bucket.js'
import { createLimiter } from '../src/limiter/limiter.js'
import type { RefundBound } from '../src/policy/refund-rule.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { redisStore } from '../src/store/redis/redis-store.js'
import type { Store } from '../src/store/store.js'
import { startRedis } from './support/redis-process.ts'
import { configOf, perMinute, ruleOf } from './support/rule-config.ts'

const cleanUps: (() => unknown)[] = []
afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

/** Returns what opens stores that share their limits; in this process there is only one. */
async function sharedStore(kind: 'memory' | 'redis'): Promise<() => Store> {
  if (kind === 'memory') {
    const store = memoryStore()
    return () => store
  }
  const redis = await startRedis()
  cleanUps.push(() => redis.stop())
  return () => {
    const client = new Redis({ port: redis.port })
    cleanUps.push(() => client.disconnect())
    return redisStore(client, { deadlineMs: 2_000 })
  }
}

const POLICIES = {
  log: slidingWindowLog({ limit: 5, window: '1h' }),
  counter: slidingWindowCounter({ limit: 5, window: '1h' }),
  bucket: tokenBucket({ capacity: 5, refillPerSecond: 0.0001 }),
  both: [slidingWindowLog({ limit: 50, window: '1h' }), slidingWindowLog({ limit: 5, window: '2h' })],
}

const perHour = (limit: number) => slidingWindowLog({ limit, window: '1h' })

type Limited = ReturnType<typeof limiterOn>
const limiterOn = (store: Store) => createLimiter({ policies: POLICIES, store })

/** Counts the requests of a caller who makes every response give its charge back. */
async function passed(
  limiters: readonly Limited[],
  ask: Parameters<Limited['check']>[1],
  atMost: RefundBound | readonly RefundBound[],
  subject: `${string}:${string}` = 'user:1',
): Promise<number> {
  let count = 0
  for (let time = 0; time < 100; time++) {
    const limiter = limiters[time % limiters.length] as Limited
    const decision = await limiter.check(subject, ask)
    if (!decision.allowed) continue
    count++
    await limiter.refund(decision, { atMost })
  }
  return count
}

describe.each(['memory', 'redis'] as const)('refunds with a bound, in %s', kind => {
  it.each(['log', 'counter', 'bucket', 'both'] as const)(
    'refunds within the limit give every unit of it back once: %s',
    async policy => {
      const limiter = limiterOn((await sharedStore(kind))())
      expect(await passed([limiter], { policy }, 'limit')).toBe(10)
      expect(await passed([limiter], { policy }, 'limit', 'user:2')).toBe(10)
    },
  )

  it('refunds within a rate give back that many units, whatever the cost of a request', async () => {
    const limiter = limiterOn((await sharedStore(kind))())
    expect(await passed([limiter], { policy: 'log' }, perHour(20))).toBe(25)
    expect(await passed([limiter], { policy: 'log', cost: 2, scope: 'dear' }, perHour(20))).toBe(12)
    expect(
      await passed([limiter], { policy: 'log', scope: 'both' }, [perHour(20), perHour(7), 'limit']),
    ).toBe(10)
    expect(
      await passed(
        [limiter],
        { policy: 'log', scope: 'all' },
        slidingWindowCounter({ limit: 5_000, window: '1h' }),
      ),
    ).toBe(100)
  })

  it('refunds of several processes share their bound', async () => {
    const open = await sharedStore(kind)
    expect(await passed([limiterOn(open()), limiterOn(open())], { policy: 'log' }, perHour(20))).toBe(25)
  })

  it('refunds beyond the bound give nothing back, and may still be given without one', async () => {
    const limiter = limiterOn((await sharedStore(kind))())
    const first = await limiter.check('user:1', { policy: 'log' })
    const second = await limiter.check('user:1', { policy: 'log' })
    expect(await limiter.refund(first, { atMost: perHour(1) })).toBe(1)
    expect(await limiter.refund(second, { atMost: perHour(1) })).toBe(0)
    expect(await limiter.refund(second)).toBe(1)
    expect((await limiter.peek('user:1', { policy: 'log' })).remaining).toBe(5)
  })

  it('refunds to an IPv6 caller are bounded for the networks around it, too', async () => {
    const config = configOf({
      policies: { api: perMinute(2) },
      default: { policy: 'api' },
      rules: [
        ruleOf({
          match: { path: '/*' },
          charge: { policy: 'api' },
          refundIf: { statuses: [{ from: 304, to: 304 }], atMost: ['limit'] },
        }),
      ],
    })
    const ruled = createLimiter({ config, store: (await sharedStore(kind))() })
    let count = 0
    for (let network = 0; network < 64; network++) {
      for (let time = 0; time < 6; time++) {
        const subject = `ip:2001:db8:1:${network.toString(16)}::1` as const
        const decision = await ruled.request({ subject, method: 'GET', path: '/a' })
        if (!decision.allowed) continue
        count++
        await ruled.refund(decision, { atMost: decision.refundAtMost })
      }
    }
    // A /56 has four times the budget of a /64: 8, and 8 come back.
    expect(count).toBe(16)
  })
})

it('refunds within a bound give nothing back while the store cannot be asked', async () => {
  const redis = await startRedis()
  cleanUps.push(() => redis.stop())
  const client = new Redis({ port: redis.port, maxRetriesPerRequest: 1 })
  client.on('error', () => {})
  cleanUps.push(() => client.disconnect())
  const limiter = limiterOn(
    redisStore(client, { deadlineMs: 100, logger: { warn() {}, error() {}, info() {} } }),
  )
  const decision = await limiter.check('user:1', { policy: 'log' })
  await redis.stop()
  expect(await limiter.refund(decision, { atMost: 'limit' })).toBe(0)
})

it.each([
  [{ atMost: '5/1m' }, 'atMost: expected a limit, or \'limit\'; got "5/1m"'],
  [{ atMost: ['limit', null] }, "atMost: expected a limit, or 'limit'; got null"],
  [{ atmost: 'limit' }, 'atmost: expected one of units, atMost; got "atmost"'],
  [{ units: 2, atMost: 'limit' }, 'units: expected a whole number from 1'],
])('refund rejects %j by name', async (options, message) => {
  const limiter = limiterOn(memoryStore())
  const decision = await limiter.check('user:1', { policy: 'log' })
  await expect(limiter.refund(decision, options as object)).rejects.toThrow(message)
})
