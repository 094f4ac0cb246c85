/** The commonest question takes a shorter way through limiter and store; it must lead to the same place. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Decision } from '../src/decision/decision.js'
import { createLimiter } from '../src/limiter.js'
import { slidingWindowCounter, slidingWindowLog, tokenBucket } from '../src/policy/limits.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import { manualClock } from '../src/testing/manual-clock.js'

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
    { weight: 8, arbitrary: fc.record({ kind: fc.constant('check' as const), subject: subjects }) },
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
  { maxLength: 60 },
)

function setUp() {
  const clock = manualClock()
  return { clock, limiter: createLimiter({ store: memoryStore({ clock, maxKeys: 4 }), policies: POLICIES }) }
}

describe('the short way', () => {
  it.each(Object.keys(POLICIES) as PolicyName[])('decides as the long way: %s', async policy => {
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
            // Saying what is the default anyway is enough to be led the long way.
            const cost = step.kind === 'costly' ? step.cost : 1
            const ask = step.kind === 'costly' ? { policy, cost } : { policy }
            const one = await short.limiter.check(step.subject, ask)
            const other = await long.limiter.check(step.subject, { policy, scope: 'global', cost })
            expect(one.toJSON()).toEqual(other.toJSON())
            if (one.allowed && cost > 0) charged = { short: one, long: other }
          }
        }
      }),
      { numRuns: 150 },
    )
  })

  it('is not a way to pass for a subject whose id was digested', async () => {
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
