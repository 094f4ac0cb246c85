import { describe, expect, it } from 'vitest'
import { concurrency, createLimiter, slidingWindowLog } from '../../src/index.ts'
import { memoryStore } from '../../src/store/memory/memory-store.ts'
import { faultyStore, guardedStore, manualClock } from '../../src/testing/index.ts'
import { changed } from '../support/changed.ts'
import { clockTimers, manualTimers, settled } from '../support/manual-timers.ts'

const policies = {
  streams: concurrency({ limit: 2, holdFor: '30s' }),
  chat: [slidingWindowLog({ limit: 3, window: '1m' }), concurrency({ limit: 1, holdFor: '30s' })],
}

describe('a limit of what is in flight', () => {
  it('a concurrency limit admits so many at once, and another when one is released', async () => {
    const limiter = createLimiter({ policies })
    const [first, second] = [await ask('streams'), await ask('streams')]
    const denied = await ask('streams')
    expect([first.allowed, second.allowed, denied.allowed]).toEqual([true, true, false])
    expect([denied.reason, denied.retryAfterMs, denied.isHeld]).toEqual(['limit-exceeded', 1_000, false])
    await first.release()
    await first.release()
    expect((await ask('streams')).allowed).toBe(true)
    expect((await ask('streams')).allowed).toBe(false)

    function ask(policy: 'streams') {
      return limiter.check('user:1', { policy })
    }
  })

  it('a request takes one permit, whatever it costs, and gives it back by release, not by refund', async () => {
    const limiter = createLimiter({ policies })
    const dear = await limiter.check('user:1', { policy: 'chat', cost: 3 })
    expect(dear.verdicts.map(({ remaining }) => remaining)).toEqual([0, 0])
    expect(await limiter.refund(dear)).toBe(3)
    const peeked = await limiter.peek('user:1', { policy: 'chat' })
    expect(peeked.verdicts.map(({ remaining }) => remaining)).toEqual([3, 0])
    await dear.release()
    const [freed] = (await limiter.peek('user:1', { policy: 'streams' })).verdicts
    expect(freed?.remaining).toBe(2)
  })

  it('a request that a rate denies holds no permit', async () => {
    const limiter = createLimiter({ policies })
    for (let time = 0; time < 3; time++) await (await limiter.check('user:1', { policy: 'chat' })).release()
    const denied = await limiter.check('user:1', { policy: 'chat' })
    expect([denied.allowed, denied.isHeld]).toEqual([false, false])
    expect(denied.verdicts.map(({ remaining }) => remaining)).toEqual([0, 1])
  })

  it('a permit is renewed while it is held, and no longer than that', async () => {
    const clock = manualClock()
    const { timers, run } = manualTimers()
    const limiter = createLimiter({ store: memoryStore({ clock }), timers, policies })
    const held = await limiter.check('user:1', { policy: 'streams' })
    for (let second = 0; second < 120; second += 5) {
      clock.advanceMs(5_000)
      run()
    }
    expect((await limiter.peek('user:1', { policy: 'streams' })).remaining).toBe(1)
    await held.release()
    run()
    expect((await limiter.peek('user:1', { policy: 'streams' })).remaining).toBe(2)
    await limiter.close()
  })

  it('a permit is renewed in time also when one that lasts longer was taken before it', async () => {
    const clock = manualClock()
    const { timers, run } = clockTimers(clock)
    const limiter = createLimiter({
      store: memoryStore({ clock }),
      timers,
      policies: { ...policies, uploads: concurrency({ limit: 2, holdFor: '1h' }) },
    })
    const long = await limiter.check('user:1', { policy: 'uploads' })
    const short = await limiter.check('user:1', { policy: 'streams' })
    for (let second = 0; second < 60; second += 5) {
      clock.advanceMs(5_000)
      run()
    }
    expect((await limiter.peek('user:1', { policy: 'streams' })).remaining).toBe(1)
    await Promise.all([long.release(), short.release()])
    await limiter.close()
  })

  it('a permit that is to expire is not renewed, and can still be released', async () => {
    const clock = manualClock()
    const { timers, run } = manualTimers()
    const limiter = createLimiter({ store: memoryStore({ clock }), timers, policies })
    const [first, second] = [
      await limiter.check('user:1', { policy: 'streams' }),
      await limiter.check('user:1', { policy: 'streams' }),
    ]
    first.abandon()
    second.abandon()
    await first.release()
    expect((await limiter.peek('user:1', { policy: 'streams' })).remaining).toBe(1)
    for (let second = 0; second < 30; second += 5) {
      clock.advanceMs(5_000)
      run()
    }
    expect((await limiter.peek('user:1', { policy: 'streams' })).remaining).toBe(2)
  })

  it('a permit that is taken while its limiter closes is not renewed', async () => {
    const store = memoryStore()
    let letAnswer = (): void => {}
    const answer = new Promise<void>(resolve => {
      letAnswer = resolve
    })
    const set: number[] = []
    const timers = {
      ...manualTimers().timers,
      inBackground(ms: number) {
        set.push(ms)
        return () => {}
      },
    }
    const limiter = createLimiter({
      store: changed(store, {
        async decide(check) {
          await answer
          store.decide(check)
        },
        close() {},
      }),
      timers,
      policies,
    })
    const asked = limiter.check('user:1', { policy: 'streams' })
    await limiter.close()
    letAnswer()
    expect((await asked).isHeld).toBe(true)
    expect(set).toEqual([])
  })

  it('a limiter gives every place back when it is closed', async () => {
    const store = memoryStore()
    const limiter = createLimiter({ store: changed(store, { close() {} }), policies })
    const other = createLimiter({ store, policies })
    const held = await limiter.check('user:1', { policy: 'streams' })
    expect((await other.peek('user:1', { policy: 'streams' })).remaining).toBe(1)
    await limiter.close()
    expect((await other.peek('user:1', { policy: 'streams' })).remaining).toBe(2)
    expect(held.allowed).toBe(true)
  })

  it('permits of requests that end in one turn go back in one call', async () => {
    const engine = memoryStore()
    const calls: number[] = []
    const store = changed(engine, {
      source: 'redis',
      refund(refunds) {
        calls.push(refunds.length)
        return engine.refund(refunds)
      },
    })
    const limiter = createLimiter({ store, policies: { many: concurrency({ limit: 500 }) } })
    const held = await Promise.all(
      Array.from({ length: 250 }, () => limiter.check('user:1', { policy: 'many' })),
    )
    await Promise.all(held.map(decision => decision.release()))
    expect(calls).toEqual([100, 100, 50])
  })
})

describe('when the store cannot be asked', () => {
  it('a process takes and gives back permits of its share when the store cannot be asked', async () => {
    const faulty = faultyStore(memoryStore())
    const store = guardedStore(faulty, { processes: 2, logger: { info() {}, warn() {}, error() {} } })
    const limiter = createLimiter({ store, policies: { streams: concurrency({ limit: 4 }) } })
    faulty.faults.always({ type: 'error' })
    const held = []
    for (let time = 0; time < 4; time++) held.push(await limiter.check('user:1', { policy: 'streams' }))
    expect(held.map(({ allowed, source }) => [allowed, source])).toEqual([
      [true, 'local'],
      [true, 'local'],
      [false, 'local'],
      [false, 'local'],
    ])
    await held[0]?.release()
    await settled()
    expect((await limiter.check('user:1', { policy: 'streams' })).allowed).toBe(true)
    expect((await limiter.check('user:1', { policy: 'streams' })).allowed).toBe(false)
  })
})

describe('numbers that are wrong', () => {
  it.each([
    [{ limit: 100_001 }, 'limit: expected a whole number from 0 to 100000; got 100001'],
    [{ limit: 1, holdFor: '100ms' as const }, 'holdFor: expected a duration from 1s to 1h; got "100ms"'],
    [{ limit: 1, holdFor: '2h' as const }, 'holdFor: expected a duration from 1s to 1h; got "2h"'],
    [{ limit: 1, window: '1m' }, 'concurrency.window: expected one of limit, holdFor, name; got "window"'],
  ])('wrong numbers of a concurrency limit are rejected by name: %j', (options, message) => {
    expect(() => concurrency(options)).toThrow(message)
  })

  it('a concurrency limit cannot be leased', () => {
    const limits = [slidingWindowLog({ limit: 100, window: '1m' }), concurrency({ limit: 10 })]
    expect(() => createLimiter({ policies: { api: { limits, lease: { max: 5, ttl: '1s' } } } })).toThrow(
      'policies.api.lease.ttl: expected no lease beside concurrency, which cannot be leased',
    )
  })
})
