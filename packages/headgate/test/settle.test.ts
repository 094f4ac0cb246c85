import { describe, expect, it } from 'vitest'
import { defineConfig } from '../src/config.ts'
import { concurrency, createLimiter, slidingWindowLog, tokenBucket } from '../src/index.ts'
import { memoryStore } from '../src/store/memory/memory-store.ts'
import { faultyStore, guardedStore, manualClock } from '../src/testing/index.ts'

const policies = {
  tokens: tokenBucket({ capacity: 1_000, refillPerSecond: 10 }),
  model: [
    slidingWindowLog({ limit: 1_000, window: '1m' }),
    slidingWindowLog({ limit: 5, window: '1m', counts: 'requests' }),
    concurrency({ limit: 2 }),
  ],
}
const SILENT = { info() {}, warn() {}, error() {} }

describe('a reservation', () => {
  it('a reservation gives back what was not used', async () => {
    const limiter = createLimiter({ policies })
    const { decision, settle } = await limiter.reserve('user:1', { policy: 'tokens', cost: 800 })
    expect([decision.allowed, decision.remaining]).toEqual([true, 200])
    await settle(300)
    expect((await limiter.peek('user:1', { policy: 'tokens' })).remaining).toBe(700)
  })

  it('a reservation charges what was used beyond it, and lets later requests wait', async () => {
    const clock = manualClock()
    const limiter = createLimiter({ policies, clock })
    const { settle } = await limiter.reserve('user:1', { policy: 'tokens', cost: 900 })
    await settle(1_200)
    const denied = await limiter.check('user:1', { policy: 'tokens' })
    expect([denied.allowed, denied.retryAfterMs]).toEqual([false, 20_100])
    clock.advanceMs(20_100)
    expect((await limiter.check('user:1', { policy: 'tokens' })).allowed).toBe(true)
  })

  it('a reservation settles once, and stands when it is not settled', async () => {
    const limiter = createLimiter({ policies })
    const { decision, settle } = await limiter.reserve('user:1', { policy: 'tokens', cost: 800 })
    expect((await limiter.peek('user:1', { policy: 'tokens' })).remaining).toBe(200)
    await settle(500)
    await settle(100)
    expect(await limiter.refund(decision)).toBe(0)
    expect((await limiter.peek('user:1', { policy: 'tokens' })).remaining).toBe(500)
  })

  it('a reservation settles less what was refunded', async () => {
    const limiter = createLimiter({ policies })
    const { decision, settle } = await limiter.reserve('user:1', { policy: 'tokens', cost: 800 })
    await limiter.refund(decision, 300)
    await settle(600)
    expect((await limiter.peek('user:1', { policy: 'tokens' })).remaining).toBe(400)
  })

  it('a reservation leaves limits of requests and of what is in flight alone', async () => {
    const limiter = createLimiter({ policies })
    const { settle } = await limiter.reserve('user:1', { policy: 'model', cost: 800 })
    await settle(100)
    const seen = await limiter.peek('user:1', { policy: 'model' })
    expect(seen.verdicts.map(({ name, remaining }) => [name, remaining])).toEqual([
      ['model.log-1m', 900],
      ['model.requests-log-1m', 4],
      ['model.concurrency', 1],
    ])
  })

  it('a reservation of a denied request settles to nothing', async () => {
    const limiter = createLimiter({ policies })
    const { decision, settle } = await limiter.reserve('user:1', { policy: 'tokens', cost: 2_000 })
    await settle(2_000)
    expect(decision.allowed).toBe(false)
    expect((await limiter.peek('user:1', { policy: 'tokens' })).remaining).toBe(1_000)
    await expect(limiter.settle(decision, 1)).rejects.toThrow('expected one that charged')
  })

  it('a reservation stands when the limiter is closed before', async () => {
    const limiter = createLimiter({ policies })
    const { settle } = await limiter.reserve('user:1', { policy: 'tokens', cost: 10 })
    await limiter.close()
    await expect(settle(5)).resolves.toBeUndefined()
  })

  it('a reservation rejects an invalid cost', async () => {
    const limiter = createLimiter({ policies })
    const { settle } = await limiter.reserve('user:1', { policy: 'tokens', cost: 10 })
    await expect(settle(-1)).rejects.toThrow('actual: expected a whole number from 0 to 4294967295; got -1')
    await settle(5)
    expect((await limiter.peek('user:1', { policy: 'tokens' })).remaining).toBe(995)
  })

  it('a reservation stands when the store cannot be asked any more, and is settled here when it was made here', async () => {
    const faulty = faultyStore(memoryStore())
    const limiter = createLimiter({ store: guardedStore(faulty, { logger: SILENT }), policies })
    const stored = await limiter.reserve('user:1', { policy: 'tokens', cost: 100 })
    faulty.faults.always({ type: 'error' })
    await stored.settle(10)
    const local = await limiter.reserve('user:2', { policy: 'tokens', cost: 800 })
    expect(local.decision.source).toBe('local')
    expect((await limiter.check('user:2', { policy: 'tokens', cost: 850 })).allowed).toBe(false)
    await local.settle(100)
    expect((await limiter.check('user:2', { policy: 'tokens', cost: 850 })).allowed).toBe(true)
  })

  it.each(['enforce', 'compare'] as const)('a reservation is settled by a limiter, too: %s', async mode => {
    const config = defineConfig({
      mode,
      policies: { tokens: policies.tokens },
      default: { policy: 'tokens' },
    })
    const ruled = createLimiter({ config })
    const { settle } = await ruled.reserve('user:1', { policy: 'tokens', cost: 800 })
    await settle(100)
    expect((await ruled.peek('user:1', { policy: 'tokens' })).remaining).toBe(900)
  })
})

describe('a limit that counts requests', () => {
  it('a limit that counts requests takes one whatever a request costs, and gives it back with the last unit', async () => {
    const limiter = createLimiter({ policies })
    const decision = await limiter.check('user:1', { policy: 'model', cost: 100 })
    expect(decision.verdicts.map(({ remaining }) => remaining)).toEqual([900, 4, 1])
    expect(await limiter.refund(decision, 40)).toBe(40)
    expect(await limiter.refund(decision, 60)).toBe(60)
    const seen = await limiter.peek('user:1', { policy: 'model' })
    expect(seen.verdicts.map(({ remaining }) => remaining)).toEqual([1_000, 5, 1])
  })

  it('a limit that counts requests rejects another word by name', () => {
    expect(() => slidingWindowLog({ limit: 1, window: '1m', counts: 'bytes' as 'cost' })).toThrow(
      "counts: expected 'cost' or 'requests'",
    )
  })
})
