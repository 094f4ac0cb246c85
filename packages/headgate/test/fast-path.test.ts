/** The commonest question takes a faster path through limiter and store, with the same results. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { slidingWindowCounter } from '../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../src/algorithms/token-bucket.js'
import type { Decision } from '../src/decision/decision.js'
import type { Answer } from '../src/engine/question.js'
import { SingleAnswer } from '../src/engine/single-question.js'
import { createLimiter } from '../src/limiter/limiter.js'
import { withDenyCache } from '../src/store/guard/deny-cache.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { toStage, toStore } from '../src/store/stage.js'
import type { Store } from '../src/store/store.js'
import { manualClock } from '../src/testing/manual-clock.js'
import { systemClock } from '../src/time/clock.js'

const POLICIES = {
  counter: slidingWindowCounter({ limit: 3, window: '20ms' }),
  buckets: slidingWindowCounter({ limit: 3, window: '20ms', buckets: 4 }),
  bucket: tokenBucket({ capacity: 3, refillPerSecond: 150 }),
  log: slidingWindowLog({ limit: 3, window: '20ms' }),
}
type PolicyName = keyof typeof POLICIES

const SUBJECTS = ['user:1', 'user:2', 'apikey:secret', 'user:~x', 'user:__proto__'] as const

const subjects = fc.constantFrom(...SUBJECTS)
const steps = fc.array(
  fc.oneof(
    {
      weight: 16,
      arbitrary: fc.record({
        kind: fc.constant('check' as const),
        subject: subjects,
        by: fc.constantFrom('limiter' as const, 'limiter' as const, 'limiter' as const, 'stricter' as const),
      }),
    },
    {
      weight: 3,
      arbitrary: fc.record({
        kind: fc.constant('wait' as const),
        us: fc.oneof(fc.integer({ min: 0, max: 1_500 }), fc.integer({ min: -5_000, max: 30_000 })),
      }),
    },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('refund' as const) }) },
    { weight: 1, arbitrary: fc.record({ kind: fc.constant('reset' as const), subject: subjects }) },
    {
      weight: 1,
      arbitrary: fc.record({
        kind: fc.constant('costly' as const),
        subject: subjects,
        cost: fc.integer({ min: 0, max: 4 }),
      }),
    },
  ),
  { maxLength: 150, size: 'max' },
)

/** The same names with other numbers: they share their states. */
const STRICTER_POLICIES = {
  counter: slidingWindowCounter({ limit: 2, window: '20ms' }),
  buckets: slidingWindowCounter({ limit: 2, window: '20ms', buckets: 4 }),
  bucket: tokenBucket({ capacity: 2, refillPerSecond: 150 }),
  log: slidingWindowLog({ limit: 2, window: '20ms' }),
}

function setUp(maxKeys = 4) {
  const clock = manualClock()
  const store = memoryStore({ clock, maxKeys })
  const limiter = createLimiter({ store, policies: POLICIES })
  return { clock, store, limiter, stricter: createLimiter({ store, policies: STRICTER_POLICIES }) }
}

describe('the short way', () => {
  it.each(Object.keys(POLICIES) as PolicyName[])(
    'the fast path decides as the general one: %s',
    async policy => {
      const tally = { denials: 0, again: 0 }
      const seen = new WeakSet<Decision>()
      await fc.assert(
        fc.asyncProperty(steps, async history => {
          const [short, long] = [setUp(), setUp()]
          let charged: { short: Decision; long: Decision } | null = null
          for (const step of history) {
            if (step.kind === 'wait') {
              for (const { clock } of [short, long]) clock.advanceUs(step.us)
            } else if (step.kind === 'refund') {
              if (charged === null) continue
              const back = await short.limiter.refund(charged.short)
              expect(back).toBe(await long.limiter.refund(charged.long))
            } else if (step.kind === 'reset') {
              for (const { limiter } of [short, long]) await limiter.reset(step.subject, { policy })
            } else {
              // Passing the default explicitly is enough to take the general path.
              const cost = step.kind === 'costly' ? step.cost : 1
              const ask = step.kind === 'costly' ? { policy, cost } : { policy }
              const by = step.kind === 'costly' ? 'limiter' : step.by
              const one = await short[by].check(step.subject, ask)
              const other = await long[by].check(step.subject, { policy, scope: 'global', cost })
              expect(shown(one)).toEqual(shown(other))
              // A reused denial may have been made earlier in the same millisecond.
              expect(Math.abs(one.resetAt - other.resetAt)).toBeLessThanOrEqual(one.allowed ? 0 : 1)
              tally.denials += one.allowed ? 0 : 1
              tally.again += seen.has(one) ? 1 : 0
              seen.add(one)
              if (one.allowed && cost > 0) charged = { short: one, long: other }
            }
          }
        }),
        { numRuns: 150 },
      )
      expect(tally.denials).toBeGreaterThan(1_000)
      expect(tally.again).toBeGreaterThan(50)
    },
  )

  it('the fast path forgets a denial whose time is over: the clock may step back after the next admission', async () => {
    const { clock, limiter } = setUp()
    const check = () => limiter.check('user:1', { policy: 'log' })
    for (let count = 0; count < 3; count++) await check()
    clock.advanceUs(19_900)
    expect((await check()).retryAfterMs).toBe(1)
    clock.advanceUs(100)
    expect((await check()).allowed).toBe(true)
    clock.advanceUs(-50)
    expect((await check()).allowed).toBe(true)
  })

  it('the fast path refuses everything that is not a subject, however it is written', async () => {
    const { limiter } = setUp()
    await limiter.check('user:1', { policy: 'log', scope: 'edge' })
    await limiter.check('apikey:secret', { policy: 'log' })
    for (const subject of [':4:edgeuser:1', ':apikey:~', ':']) {
      const wrong = limiter.check(subject as `${string}:${string}`, { policy: 'log' })
      await expect(wrong).rejects.toMatchObject({ code: 'ERR_HEADGATE_INVALID_SUBJECT' })
    }
    expect((await limiter.peek('user:1', { policy: 'log', scope: 'edge' })).remaining).toBe(2)
  })

  it('the fast path returns decisions that cannot be changed for the next caller', async () => {
    const { limiter } = setUp()
    const check = () => limiter.check('user:1', { policy: 'log' })
    for (let count = 0; count < 3; count++) await check()
    const denial = await check()
    expect(() => Object.assign(denial, { retryAfterMs: 0 })).toThrow(TypeError)
    const again = await check()
    expect(again).toBe(denial)
    expect(again.allowed).toBe(false)
  })

  it('the fast path leaves no trace of newcomers that a full store cannot take in, and none of those it denies', async () => {
    const keys = 48
    for (let free = 0; free < keys; free++) {
      const { store, limiter, stricter } = setUp(keys)
      for (let index = 0; index < keys; index++) {
        const requests = index === free ? 1 : 3
        for (let count = 0; count < requests; count++) await limiter.check(`user:${index}`, { policy: 'log' })
      }
      const none = createLimiter({ store, policies: { log: slidingWindowLog({ limit: 0, window: '20ms' }) } })
      for (let index = 0; index < 40; index++) await none.check(`new:${index}`, { policy: 'log' })
      // The one that had room was forgotten to look at them, and none of them took its place.
      expect(store.size).toBe(keys - 1)
      for (let index = 0; index < keys; index++) {
        if (index === free) continue
        expect((await stricter.peek(`user:${index}`, { policy: 'log' })).allowed).toBe(false)
      }
    }
  })

  it('the fast path frees no client by making the store remember others, each driven to its limit', async () => {
    const { store, limiter } = setUp(200)
    const check = (subject: `${string}:${string}`) => limiter.check(subject, { policy: 'log' })
    for (let count = 0; count < 3; count++) await check('user:victim')
    for (let index = 0; index < 20_000; index++) {
      for (let count = 0; count < 3; count++) await check(`new:${index}`)
      if (index % 100 === 0) expect((await check('user:victim')).allowed).toBe(false)
    }
    expect((await check('user:victim')).allowed).toBe(false)
    expect(store.size).toBe(200)
  })

  it('the fast path goes on empty after the store was closed, and both paths find the same states', async () => {
    const { store, limiter } = setUp()
    for (let count = 0; count < 4; count++) await limiter.check('user:1', { policy: 'log' })
    store.close()
    expect(store.size).toBe(0)
    expect((await limiter.check('user:1', { policy: 'log' })).remaining).toBe(2)
    expect((await limiter.check('user:1', { policy: 'log', cost: 1 })).remaining).toBe(1)
    expect(store.size).toBe(1)
  })

  it('the fast path reads the name of the policy once', async () => {
    const { limiter } = setUp()
    const names = ['log', 'log', 'counter', 'counter']
    const ask = {
      get policy() {
        return names.shift() as 'log'
      },
    }
    await limiter.check('user:1', ask)
    expect((await limiter.check('user:1', { policy: 'log' })).policy).toBe('log')
  })

  it('the fast path says when everything is available again by the clock of the limiter, whatever the store goes by', async () => {
    const clock = manualClock()
    const { clock: _, ...local } = memoryStore()
    const remote: Store = { ...local, decide: async question => withoutTime(await local.decide(question)) }
    const store = toStore(withDenyCache(toStage(remote), { clock: systemClock, maxSubjects: 10 }), {})
    const policies = { log: slidingWindowLog({ limit: 1, window: '5s' }) }
    const limiter = createLimiter({ store, clock, policies })
    for (let count = 0; count < 3; count++) {
      const { resetAt } = await limiter.check('user:1', { policy: 'log' })
      expect(resetAt - clock.unixMs()).toBeGreaterThan(4_000)
      expect(resetAt - clock.unixMs()).toBeLessThanOrEqual(5_000)
    }
  })

  it('the fast path lets nobody pass for a subject whose id was digested', async () => {
    const { limiter } = setUp()
    const secret = await limiter.check('apikey:secret', { policy: 'log' })
    expect(secret.remaining).toBe(2)
    const { verdicts } = await limiter.peek('apikey:secret', { policy: 'log' })
    expect(verdicts[0]?.remaining).toBe(2)
    const names = ['apikey:~', 'apikey:~bm9wZQ']
    for (const name of names) {
      expect((await limiter.check(name as `${string}:${string}`, { policy: 'log' })).remaining).toBe(2)
    }
  })
})

/** Returns a decision without the fields that depend on the moment of reading. */
function shown(decision: Decision) {
  const { resetAt: _, ...rest } = decision.toJSON()
  return rest
}

/** Answers as Redis does: in its own time. */
function withoutTime(answer: Answer): Answer {
  const { remaining, retryAfterUs, resetAfterUs, chargedAtUs } = answer as SingleAnswer
  return new SingleAnswer(remaining, retryAfterUs, resetAfterUs, chargedAtUs, undefined)
}
