/** Tests step by step how one process leases, spends, peeks and gives back, over an engine that answers late. */
import { describe, expect, it } from 'vitest'
import type { Limit } from '../src/algorithms/algorithm.js'
import { quota } from '../src/algorithms/quota.js'
import { slidingWindowCounter } from '../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../src/algorithms/token-bucket.js'
import { createLimiter } from '../src/limiter/limiter.js'
import { leaseLimits } from '../src/policy/leases.js'
import { type Answer, askStore, type Question } from '../src/store/ask-store.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import type { MaybePromise } from '../src/store/store.js'
import { manualClock } from '../src/testing/manual-clock.js'
import { manualTimers, settled } from './support/manual-timers.ts'
import { slowRemote } from './support/slow-remote.ts'

const question = (limit: Limit, cost = 1, name = limit.id): Question => ({
  alternatives: [[{ subject: 'user:1', scope: 'global', name: `p.${name}`, limit, cost }]],
  shadow: [],
})

describe('leases', () => {
  function oneProcess(limit: Limit) {
    const clock = manualClock()
    const engine = memoryStore({ clock })
    const late = slowRemote(engine)
    const ticking = manualTimers()
    const store = late.open({ clock, timers: ticking.timers })
    const ask = async (cost = 1, numbers: Limit = limit): Promise<Answer> => {
      const answer = askStore(store, question(numbers, cost, limit.id))
      await settled()
      late.letThrough()
      return answer
    }
    const left = (numbers: Limit = limit): number => {
      const check = { subject: 'user:1', scope: 'global', name: `p.${limit.id}`, limit: numbers, cost: 1 }
      const { verdicts } = askStore(engine, { alternatives: [[check]], shadow: [] }, true) as Answer
      return verdicts[0]?.[0]?.remaining ?? 0
    }
    return { clock, engine, late, ticking, store, ask, left }
  }

  const roomy = leaseLimits('lease', [slidingWindowLog({ limit: 10_000, window: '10s' })], {
    max: 100,
    ttl: '500ms',
  })[0] as Limit

  it('leases take nothing in advance for a key that is asked for now and then', async () => {
    const { clock, ask, left } = oneProcess(roomy)
    for (let times = 1; times <= 20; times++) {
      expect((await ask()).leased).toBeUndefined()
      expect(left()).toBe(10_000 - times)
      clock.advanceUs(300_000)
    }
  })

  it('leases save most calls for a hot key, and the answers report what this process knows', async () => {
    const { late, ask } = oneProcess(roomy)
    let fromLease = 0
    for (let times = 1; times <= 2_000; times++) {
      const answer = await ask()
      expect(answer.charged).toBe(0)
      if (answer.leased) fromLease++
      expect(answer.verdicts[0]?.[0]?.remaining).toBe(10_000 - times)
    }
    expect(fromLease).toBeGreaterThan(1_950)
    expect(late.calls()).toBeLessThan(50)
  })

  it('leases are not spent by a question with a shadow check, which is to be counted', async () => {
    const { ask, store, late } = oneProcess(roomy)
    for (let times = 0; times < 50; times++) await ask()
    expect((await ask()).leased).toBe(true)
    const check = { subject: 'user:1', scope: 'global', name: `p.${roomy.id}`, limit: roomy, cost: 1 }
    const answer = askStore(store, { alternatives: [[check]], shadow: [{ ...check, name: 'p.trial' }] })
    await settled()
    late.letThrough()
    expect(await answer).not.toHaveProperty('leased')
    expect((await answer).shadow).toHaveLength(1)
  })

  it('leases give back what is left over, on idle and on close', async () => {
    const idle = oneProcess(roomy)
    for (let times = 0; times < 50; times++) await idle.ask()
    expect(idle.left()).toBeLessThan(9_950)
    idle.clock.advanceUs(200_000)
    idle.ticking.run()
    idle.late.letThrough()
    expect(idle.left()).toBe(9_950)
    const closing = oneProcess(roomy)
    for (let times = 0; times < 50; times++) await closing.ask()
    const closed = closing.store.close()
    closing.late.letThrough()
    await closed
    expect(closing.left()).toBe(9_950)
  })

  it('leases end when the numbers change, and with a reset', async () => {
    const changed = oneProcess(roomy)
    for (let times = 0; times < 50; times++) await changed.ask()
    const fewer = leaseLimits('lease', [slidingWindowLog({ limit: 100, window: '10s' })], {
      max: 10,
      ttl: '500ms',
    })
    expect((await changed.ask(1, fewer[0])).leased).toBeUndefined()
    await settled()
    changed.late.letThrough()
    expect(changed.left(fewer[0])).toBe(49)
    const reset = oneProcess(roomy)
    for (let times = 0; times < 50; times++) await reset.ask()
    const check = { subject: 'user:1', scope: 'global', name: `p.${roomy.id}`, limit: roomy, cost: 1 }
    const done = reset.store.reset([check])
    reset.late.letThrough()
    await done
    expect((await reset.ask()).leased).toBeUndefined()
    expect(reset.left()).toBe(9_999)
  })

  it('a peek looks at leases without spending them', async () => {
    const { engine, late, store, ask, left } = oneProcess(roomy)
    for (let times = 0; times < 60; times++) await ask()
    const looking = question(roomy)
    // Another process takes all that the store has left; what is held here is still good.
    const check = { subject: 'user:1', scope: 'global', name: `p.${roomy.id}`, limit: roomy, cost: left() }
    void askStore(engine, { alternatives: [[check]], shadow: [] })
    expect(left()).toBe(0)
    const calls = late.calls()
    const looked = await askStore(store, looking, true)
    expect(looked).toMatchObject({ charged: 0, leased: true })
    expect(looked.verdicts[0]?.[0]).toMatchObject({
      allowed: true,
      remaining: 10_000 - 60,
      chargedAtUs: null,
    })
    expect((await askStore(store, looking, true)).verdicts).toEqual(looked.verdicts)
    expect(await ask()).toMatchObject({ charged: 0, leased: true })
    expect(late.calls()).toBe(calls)
  })

  it('leases of a bucket, given back late, do not return what has been refilled', async () => {
    const bucket = leaseLimits('lease', [tokenBucket({ capacity: 120, refillPerSecond: 30 })], {
      max: 24,
      ttl: '200ms',
    })[0] as Limit
    const { clock, engine, late, ticking, ask, left } = oneProcess(bucket)
    for (let times = 0; times < 36; times++) {
      await ask()
      clock.advanceUs(1_000)
    }
    const held = 120 - 36 - left()
    expect(held).toBeGreaterThan(5)
    // This process is busy; the bucket is full again, and another process empties it.
    clock.advanceUs(10_000_000)
    const all = {
      subject: 'user:1',
      scope: 'global',
      name: `p.${bucket.id}`,
      limit: bucket,
      cost: bucket.limit,
    }
    expect(askStore(engine, { alternatives: [[all]], shadow: [] })).toMatchObject({ charged: 0 })
    ticking.run()
    late.letThrough()
    await settled()
    expect(left()).toBe(0)
  })

  it('leases of a bucket do not grow from hand to hand', async () => {
    const bucket = leaseLimits('lease', [tokenBucket({ capacity: 1_000, refillPerSecond: 100 })], {
      max: 500,
      ttl: '500ms',
    })[0] as Limit
    const clock = manualClock()
    const engine = memoryStore({ clock })
    const check = { subject: 'user:1', scope: 'global', name: 'p.bucket', limit: bucket, cost: 1 }
    const take = (cost: number): Answer =>
      askStore(engine, { alternatives: [[{ ...check, cost }]], shadow: [] }) as Answer
    // Each takes just before the previous one gives back, well within the time of its lease, as in reality.
    const held = 400
    let chargedAtUs = take(held).verdicts[0]?.[0]?.chargedAtUs ?? null
    for (let hand = 0; hand < 40; hand++) {
      clock.advanceUs(400_000)
      const next = take(held).verdicts[0]?.[0]?.chargedAtUs ?? null
      void engine.refund([{ check, units: held, chargedAtUs, heldSinceUs: chargedAtUs ?? undefined }])
      chargedAtUs = next
    }
    let admitted = held
    while (take(1).charged === 0) admitted++
    expect(admitted).toBeLessThanOrEqual(1_000)
  })

  it('leases deny nobody who asked after the grant was decided', async () => {
    const small = leaseLimits('lease', [slidingWindowLog({ limit: 20, window: '1s' })], {
      max: 20,
      ttl: '50ms',
    })[0] as Limit
    const { clock, late, store, ask } = oneProcess(small)
    for (let times = 0; times < 20; times++) await ask()
    const first = askStore(store, question(small, 1))
    await settled()
    // Decided now and received later; in the meantime there is room again.
    const decided = late.decideNow()
    clock.advanceUs(1_100_000)
    const second = askStore(store, question(small, 1))
    await settled()
    decided()
    await settled()
    late.letThrough()
    expect((await first).charged).toBe(-1)
    await settled()
    late.letThrough()
    expect((await second).charged).toBe(0)
  })

  it('leases survive a store that throws, and can be closed twice while a grant is in flight', async () => {
    const { late, store, ask } = oneProcess(roomy)
    for (let times = 0; times < 10; times++) await ask()
    const { remote } = late
    const { ask: asRedis } = remote
    remote.ask = () => {
      throw new Error('broken')
    }
    const asked = question(roomy, 200)
    await expect(askStore(store, asked)).rejects.toThrow('broken')
    remote.ask = asRedis
    const answer = askStore(store, asked)
    await settled()
    const closes = [store.close(), store.close()]
    for (let round = 0; round < 4; round++) {
      await settled()
      late.letThrough()
    }
    expect((await answer).charged).toBe(0)
    await Promise.all(closes)
  })

  it('leases that come while the store closes are given back, too', async () => {
    const { late, store, ask, left } = oneProcess(roomy)
    let spent = 0
    let answer: MaybePromise<Answer> | null = null
    // Until a grant is in flight that takes more than the request that waits for it.
    while (answer === null) {
      const calls = late.calls()
      const asked = askStore(store, question(roomy, 1))
      spent++
      await settled()
      if (spent > 40 && late.calls() > calls) answer = asked
      else late.letThrough()
    }
    const closed = store.close()
    await settled()
    late.letThrough()
    expect(await answer).toMatchObject({ charged: 0 })
    await settled()
    late.letThrough()
    await closed
    expect(left()).toBe(10_000 - spent)
    expect(await ask().catch(() => null)).not.toMatchObject({ leased: true })
  })

  it('leases of the counter end with its window', async () => {
    const counter = leaseLimits('lease', [slidingWindowCounter({ limit: 10_000, window: '10s' })], {
      max: 100,
      ttl: '500ms',
    })[0] as Limit
    const { clock, ask } = oneProcess(counter)
    clock.advanceUs(10_000_000 - (clock.nowUs() % 10_000_000) - 20_000)
    for (let times = 0; times < 40; times++) await ask()
    expect((await ask()).leased).toBe(true)
    clock.advanceUs(19_999)
    expect((await ask()).leased).toBe(true)
    clock.advanceUs(1)
    const next = await ask()
    expect(next.verdicts[0]?.[0]?.chargedAtUs).toBe(clock.nowUs())
  })

  it('leases of a quota end with its period', async () => {
    const daily = leaseLimits('lease', [quota({ limit: 10_000, per: 'day', timeZone: 'Europe/Berlin' })], {
      max: 100,
      ttl: '10s',
    })[0] as Limit
    const { clock, late, store, ask, left } = oneProcess(daily)
    const midnightUs = Date.parse('2027-01-16T00:00:00+01:00') * 1_000
    clock.advanceUs(midnightUs - clock.nowUs() - 1_000_000)
    for (let times = 0; times < 40; times++) await ask()
    clock.advanceUs(998_000)
    expect((await ask()).leased).toBe(true)
    clock.advanceUs(2_000)
    expect((await ask()).verdicts[0]?.[0]?.chargedAtUs).toBe(midnightUs)
    const closed = store.close()
    late.letThrough()
    await closed
    expect(left()).toBe(9_999)
  })

  it('leases serve everybody who waits from one grant', async () => {
    const { late, store, ask } = oneProcess(roomy)
    for (let times = 0; times < 60; times++) await ask()
    const before = late.calls()
    const answers = Array.from({ length: 300 }, () => askStore(store, question(roomy, 1)))
    for (let round = 0; round < 6; round++) {
      await settled()
      late.letThrough()
    }
    expect((await Promise.all(answers)).every(({ charged }) => charged === 0)).toBe(true)
    expect(late.calls() - before).toBeLessThan(300)
  })

  it('leases take one deadline for the grant and what comes after it', async () => {
    const { clock, late, store, ask, ticking } = oneProcess(roomy)
    for (let times = 0; times < 60; times++) await ask()
    // More than a grant can cover: those who find nothing left ask for themselves.
    const answers = Array.from({ length: 300 }, () =>
      Promise.resolve(askStore(store, question(roomy, 1))).then(
        ({ charged }) => charged,
        ({ code }) => code,
      ),
    )
    await settled()
    clock.advanceUs(29_000)
    late.letThrough()
    await settled()
    clock.advanceUs(2_000)
    ticking.run()
    const outcomes = await Promise.all(answers)
    expect(new Set(outcomes)).toEqual(new Set([0, 'ERR_HEADGATE_STORE_TIMEOUT']))
    // Redis decides them all the same: an unknown outcome is neither repeated nor taken back.
    const calls = late.calls()
    late.letThrough()
    await settled()
    expect(late.calls()).toBe(calls)
  })

  it.each([
    ['lease.ttl', slidingWindowLog({ limit: 10, window: '1s' }), { max: 1, ttl: '51ms' }, 'at most 50ms'],
    [
      'lease.ttl',
      tokenBucket({ capacity: 100, refillPerSecond: 100 }),
      { max: 1, ttl: '51ms' },
      'at most 50ms',
    ],
    [
      'lease.max',
      slidingWindowLog({ limit: 10, window: '1s' }),
      { max: 11, ttl: '50ms' },
      'a whole number from 1 to the limit 10',
    ],
    ['lease', slidingWindowLog({ limit: 10, window: '1s' }), 'always', "'auto', 'off' or { max, ttl }"],
  ])('leases reject %s that could admit more, by name', (field, limit, lease, expected) => {
    const policies = { api: { limits: limit, lease: lease as never } }
    expect(() => createLimiter({ policies })).toThrow(`policies.api.${field}: expected ${expected}`)
  })

  it('leases make a bucket smaller by what is refilled in the time of a lease, also in what callers are told', () => {
    const [limit] = leaseLimits('lease', [tokenBucket({ capacity: 100, refillPerSecond: 50 })], {
      max: 5,
      ttl: '60ms',
    })
    expect(limit).toMatchObject({ limit: 97, quota: { limit: 97 } })
  })
})
