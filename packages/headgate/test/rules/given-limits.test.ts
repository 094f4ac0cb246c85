/** Limits that come with the question instead of the policy file. */
import { describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { checkLimits, type GivenLimit, refundLimits } from '../../src/limiter/given-limits.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import type { HeadgateEvent } from '../../src/observe/event.js'
import { configOf } from '../support/rule-config.ts'

const THREE = slidingWindowLog({ limit: 3, window: '1m' })
const BAN = slidingWindowLog({ limit: 0, window: '1m' })

function given(id: string, cost = 1, limit = THREE): GivenLimit {
  return { subject: `descriptor:${id}`, policy: 'envoy', limit, scope: 'edge', cost }
}

function gateAndEvents() {
  const events: HeadgateEvent[] = []
  const limiter = createLimiter({ config: configOf(), onEvent: event => void events.push(event) })
  return { limiter, events }
}

describe('checkLimits', () => {
  it('checkLimits charges all or none, each with its own cost', async () => {
    const { limiter, events } = gateAndEvents()
    const first = await checkLimits(limiter, { alternatives: [[given('a', 2), given('b', 1)]] })
    expect(first).toMatchObject({ charged: 0, verdicts: [[{ remaining: 1 }, { remaining: 2 }]] })
    const second = await checkLimits(limiter, { alternatives: [[given('a', 2), given('b', 1)]] })
    expect(second).toMatchObject({
      charged: -1,
      verdicts: [
        [
          { allowed: false, remaining: 1 },
          { allowed: true, remaining: 2 },
        ],
      ],
      decision: { allowed: false, policy: 'envoy' },
    })
    expect(events).toMatchObject([{ type: 'decision' }, { type: 'denial', policy: 'envoy' }])
  })

  it('checkLimits charges the first alternative that has room, and shadow beside it', async () => {
    const { limiter } = gateAndEvents()
    const alternatives = [[given('a', 3), given('b', 3)], [given('a', 3)], [given('b', 3)]]
    await checkLimits(limiter, { alternatives: [[given('a', 1)]] })
    const answer = await checkLimits(limiter, { alternatives, shadow: [given('c', 4)] })
    expect(answer).toMatchObject({ charged: 2, shadow: [{ allowed: false }] })
  })

  it('checkLimits obeys the switches', async () => {
    const { limiter } = gateAndEvents()
    const dear = { alternatives: [[given('a', 5), given('b', 1, BAN)]] }
    expect((await checkLimits(limiter, dear)).decision.allowed).toBe(false)
    await limiter.control.set({ enabled: false })
    expect(await checkLimits(limiter, dear)).toMatchObject({
      decision: { allowed: true, reason: 'disabled' },
      verdicts: [[null, null]],
    })
    await limiter.control.set({ enabled: true, multiplier: 0 })
    expect(await checkLimits(limiter, dear)).toMatchObject({
      decision: { allowed: false },
      verdicts: [[null, { allowed: false }]],
    })
    expect((await checkLimits(limiter, { alternatives: [[given('a', 5)]] })).decision).toMatchObject({
      allowed: true,
      reason: 'paused',
    })
    await limiter.control.set({ multiplier: 2 })
    expect(await checkLimits(limiter, { alternatives: [[given('a', 5)]] })).toMatchObject({
      verdicts: [[{ limit: 6, remaining: 1 }]],
    })
  })

  it('checkLimits gives units back without a reference', async () => {
    const { limiter } = gateAndEvents()
    await checkLimits(limiter, { alternatives: [[given('a', 3)]] })
    expect(await refundLimits(limiter, [given('a', 2), given('b', 2)])).toEqual([2, 0])
    expect((await checkLimits(limiter, { alternatives: [[given('a', 2)]] })).charged).toBe(0)
  })

  it('checkLimits rejects a name that cannot be a key, and a closed limiter', async () => {
    const { limiter } = gateAndEvents()
    const bad = { ...given('a'), policy: 'a.b' }
    await expect(checkLimits(limiter, { alternatives: [[bad]] })).rejects.toThrow('policy: expected up to 32')
    await limiter.close()
    await expect(checkLimits(limiter, { alternatives: [[given('a')]] })).rejects.toThrow('closed')
    await expect(refundLimits(limiter, [given('a')])).rejects.toThrow('closed')
  })
})
