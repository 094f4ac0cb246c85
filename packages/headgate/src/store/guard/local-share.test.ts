import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Limit } from '../../algorithms/algorithm.js'
import { slidingWindowCounter } from '../../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { tokenBucket } from '../../algorithms/token-bucket.js'
import type { Check, Question } from '../../engine/question.js'
import { manualClock } from '../../testing/manual-clock.js'
import { createLocalShare } from './local-share.js'

const WINDOW_MS = 60_000

function ask(limit: Limit, cost = 1): Question {
  const check: Check = { subject: 'user:1', scope: 'global', name: `p.${limit.id}`, limit, cost }
  return { alternatives: [[check]], shadow: [] }
}

/** Returns the units a fleet of processes admits in one window if each is asked `times` times, evenly spread. */
function admittedByFleet(limit: Limit, processes: number, times: number): number {
  const clock = manualClock()
  const fleet = Array.from({ length: processes }, () => createLocalShare(clock, () => processes))
  let admitted = 0
  for (let time = 0; time < times; time++) {
    for (const share of fleet) if (share.decide(ask(limit)).charged === 0) admitted++
    clock.advanceUs(Math.floor((WINDOW_MS * 1000) / times) - 1)
  }
  return admitted
}

describe("a process's share", () => {
  it('the shares of a fleet add up to no more than the limit, and to most of it', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 12 }), fc.integer({ min: 1, max: 200 }), (processes, limit) => {
        const admitted = admittedByFleet(slidingWindowLog({ limit, window: '1m' }), processes, 300)
        // With fewer units than processes each may give one away at the start; they are spread over longer windows.
        expect(admitted).toBeLessThanOrEqual(Math.max(limit, processes))
        expect(admitted).toBeGreaterThanOrEqual(Math.min(limit, processes * Math.floor(limit / processes)))
      }),
      { numRuns: 60 },
    )
  })

  it('a share below one unit is one unit in a longer window', () => {
    const share = (limit: Limit, processes: number): Limit => limit.algorithm.share(limit, processes)
    expect(share(slidingWindowLog({ limit: 3, window: '1m' }), 10)).toMatchObject({
      limit: 1,
      windowUs: 200_000_000,
    })
    expect(share(slidingWindowCounter({ limit: 10, window: '1m' }), 4)).toMatchObject({ limit: 2 })
    expect(share(tokenBucket({ capacity: 2, refillPerSecond: 1 }), 4)).toMatchObject({
      limit: 1,
      refillPerSecond: 0.25,
    })
  })

  it('a share starts from what the store last said was left', () => {
    const clock = manualClock()
    const share = createLocalShare(clock, () => 4)
    const question = ask(slidingWindowLog({ limit: 100, window: '1m' }))
    const verdict = {
      allowed: true,
      remaining: 20,
      retryAfterUs: 0,
      resetAfterUs: 60_000_000,
      chargedAtUs: 1,
    }
    share.remember(question, { charged: 0, verdicts: [[verdict]], shadow: [] })
    const admitted = Array.from({ length: 50 }, () => share.decide(question).charged).filter(at => at === 0)
    expect(admitted.length).toBe(5)
    clock.advanceMs(WINDOW_MS)
    expect(share.decide(question).verdicts[0]?.[0]?.remaining).toBe(24)
  })

  it('a share takes a cost above itself but within the limit while untouched, as debt', () => {
    const clock = manualClock()
    const share = createLocalShare(clock, () => 10)
    const limit = slidingWindowLog({ limit: 100, window: '1m' })
    expect(share.decide(ask(limit, 50)).charged).toBe(0)
    const denied = share.decide(ask(limit))
    expect(denied.verdicts[0]?.[0]?.retryAfterUs).toBe(5 * WINDOW_MS * 1000)
    clock.advanceMs(5 * WINDOW_MS - 1)
    expect(share.decide(ask(limit)).charged).toBe(-1)
    clock.advanceMs(1)
    expect(share.decide(ask(limit)).charged).toBe(0)
    expect(share.decide(ask(limit, 50)).charged).toBe(-1)
    expect(share.decide(ask(limit, 101)).verdicts[0]?.[0]?.retryAfterUs).toBe(Number.POSITIVE_INFINITY)
  })

  it('a decision of a share says that the process decided by itself', () => {
    expect(
      createLocalShare(manualClock(), () => 1).decide(ask(slidingWindowLog({ limit: 1, window: '1m' })))
        .source,
    ).toBe('local')
  })

  it('a share is not given anew by a store that comes and goes', () => {
    const limits = [
      slidingWindowLog({ limit: 10, window: '1m' }),
      slidingWindowCounter({ limit: 10, window: '1m', buckets: 6 }),
      tokenBucket({ capacity: 10, refillPerSecond: 0.01 }),
    ]
    for (const limit of limits) {
      const clock = manualClock()
      const share = createLocalShare(clock, () => 1)
      let admitted = 0
      for (let outage = 0; outage < 8; outage++) {
        const verdict = { allowed: true, remaining: 9, retryAfterUs: 0, resetAfterUs: 0, chargedAtUs: 0 }
        share.remember(ask(limit), { charged: 0, verdicts: [[verdict]], shadow: [] })
        clock.advanceMs(10)
        for (let time = 0; time < 3; time++) if (share.decide(ask(limit)).charged === 0) admitted++
      }
      // Of the first outage's ten one is Redis' own; the later ones no longer count it, and find the others used.
      expect(admitted, limit.algorithm.name).toBeGreaterThanOrEqual(9)
      expect(admitted, limit.algorithm.name).toBeLessThanOrEqual(10)
    }
  })

  it('the share of a bucket is not given twice to a process that was alone and no longer is', () => {
    const clock = manualClock()
    let live = 1
    const share = createLocalShare(clock, () => live)
    const question = ask(tokenBucket({ capacity: 100, refillPerSecond: 50 }))
    const says = (remaining: number): void => {
      const verdict = { allowed: true, remaining, retryAfterUs: 0, resetAfterUs: 0, chargedAtUs: 0 }
      share.remember(question, { charged: 0, verdicts: [[verdict]], shadow: [] })
    }
    const drain = (): number => {
      let admitted = 0
      while (share.decide(question).charged === 0) admitted++
      return admitted
    }
    says(40)
    share.decide(question)
    // Units charged for the others have been refilled, at the rate of one who is alone.
    clock.advanceMs(2_000)
    live = 8
    expect(drain()).toBe(12)
    says(90)
    expect(drain()).toBe(0)
  })

  it('a share has room again when the store says so: what was kept for others is not kept twice', () => {
    const clock = manualClock()
    const share = createLocalShare(clock, () => 1)
    const question = ask(slidingWindowLog({ limit: 10, window: '1m' }))
    const remaining = (units: number): number => {
      const verdict = { allowed: true, remaining: units, retryAfterUs: 0, resetAfterUs: 0, chargedAtUs: 0 }
      share.remember(question, { charged: 0, verdicts: [[verdict]], shadow: [] })
      return share.peek(question).verdicts[0]?.[0]?.remaining ?? -1
    }
    expect(remaining(0)).toBe(0)
    clock.advanceMs(1_000)
    expect(remaining(7)).toBe(7)
  })
})
