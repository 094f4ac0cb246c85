import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { Limit } from '../../algorithms/algorithm.js'
import { quota } from '../../algorithms/quota.js'
import { slidingWindowCounter } from '../../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { tokenBucket } from '../../algorithms/token-bucket.js'
import type { Check } from '../../check/check.js'
import type { PendingCheck } from '../../check/pending-check.js'
import { NOBODY_LISTENS } from '../../check/plan.js'
import { Plans } from '../../check/plans.js'
import { manualClock } from '../../testing/manual-clock.js'
import { LocalShare } from './local-share.js'

const WINDOW_MS = 60_000
const DAY_US = 86_400_000_000

const plans = new Plans(NOBODY_LISTENS)

function pending(limit: Limit, cost = 1, isPeek = false): PendingCheck {
  const check: Check = { subject: 'user:1', scope: 'global', name: `p.${limit.id}`, limit, cost }
  return plans.pending({ alternatives: [[check]], shadow: [] }, { isPeek })
}

function decide(share: LocalShare, limit: Limit, cost = 1, isPeek = false): PendingCheck {
  const check = pending(limit, cost, isPeek)
  share.decide(check)
  return check
}

const admits = (share: LocalShare, limit: Limit, cost = 1): boolean =>
  decide(share, limit, cost).charged === 0

/** The store says what is left. */
function tell(share: LocalShare, limit: Limit, remaining: number, resetAfterUs = 0): void {
  const check = pending(limit)
  check.set(0, 0, remaining, resetAfterUs, 0)
  check.charged = 0
  share.learn(check)
}

/** Returns the units a fleet of processes admits in one window if each is asked `times` times, evenly spread. */
function admittedByFleet(limit: Limit, processes: number, times: number): number {
  const clock = manualClock()
  const fleet = Array.from({ length: processes }, () => new LocalShare(clock, () => processes))
  let admitted = 0
  for (let time = 0; time < times; time++) {
    for (const share of fleet) if (admits(share, limit)) admitted++
    clock.advanceUs(Math.floor((WINDOW_MS * 1000) / times) - 1)
  }
  return admitted
}

describe("a process's share", () => {
  it('a quota goes on from what the store last said was left, and a caller nobody has seen gets a part of one day', () => {
    const month = quota({ limit: 3_100, per: 'month' })
    const count = (share: LocalShare): number => {
      let admitted = 0
      while (admitted < 4_000 && admits(share, month)) admitted++
      return admitted
    }
    const share = (): LocalShare => new LocalShare(manualClock(), () => 4)
    expect(count(share())).toBe(25)
    const known = share()
    tell(known, month, 3_000, DAY_US)
    expect(count(known)).toBe(750)
    const nearlyOut = share()
    tell(nearlyOut, month, 8, DAY_US)
    expect(count(nearlyOut)).toBe(2)
  })

  it('what the store said of a quota counts until the period ends', () => {
    const clock = manualClock()
    const share = new LocalShare(clock, () => 4)
    const month = quota({ limit: 3_100, per: 'month' })
    tell(share, month, 0, DAY_US)
    clock.advanceUs(DAY_US)
    expect(admits(share, month, 700)).toBe(true)
  })

  it('a caller whose quota may have more left is to ask again when the store may be back, another at the end of the period', () => {
    const month = quota({ limit: 3_100, per: 'month' })
    const waitMs = (left: number | null, cost: number): number => {
      const share = new LocalShare(manualClock(), () => 4)
      if (left !== null) tell(share, month, left, DAY_US)
      while (admits(share, month)) {}
      return decide(share, month, cost).wait(0) / 1_000
    }
    const soonMs = 1_000
    expect(waitMs(null, 1)).toBe(soonMs)
    expect(waitMs(null, 3_000)).toBe(soonMs)
    expect(waitMs(40, 1)).toBe(soonMs)
    expect(waitMs(40, 40)).toBe(soonMs)
    expect(waitMs(0, 1)).toBeGreaterThan(DAY_US / 1_000)
    expect(waitMs(40, 41)).toBeGreaterThan(DAY_US / 1_000)
    expect(waitMs(40, 3_101)).toBe(Number.POSITIVE_INFINITY)
  })

  it('a quota of less than a unit a day admits one request of a caller nobody has seen, and a quota of 0 none', () => {
    for (const [limit, admitted] of [
      [10, true],
      [1, true],
      [0, false],
    ] as const) {
      const share = new LocalShare(manualClock(), () => 4)
      const month = quota({ limit, per: 'month' })
      expect([admits(share, month), admits(share, month)]).toEqual([admitted, false])
    }
  })

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
    const share = new LocalShare(clock, () => 4)
    const limit = slidingWindowLog({ limit: 100, window: '1m' })
    tell(share, limit, 20)
    const admitted = Array.from({ length: 50 }, () => admits(share, limit)).filter(Boolean)
    expect(admitted.length).toBe(5)
    clock.advanceMs(WINDOW_MS)
    expect(decide(share, limit).left(0)).toBe(24)
  })

  it('a share takes a cost above itself but within the limit while untouched, as debt', () => {
    const clock = manualClock()
    const share = new LocalShare(clock, () => 10)
    const limit = slidingWindowLog({ limit: 100, window: '1m' })
    expect(admits(share, limit, 50)).toBe(true)
    expect(decide(share, limit).wait(0)).toBe(5 * WINDOW_MS * 1000)
    clock.advanceMs(5 * WINDOW_MS - 1)
    expect(admits(share, limit)).toBe(false)
    clock.advanceMs(1)
    expect(admits(share, limit)).toBe(true)
    expect(admits(share, limit, 50)).toBe(false)
    expect(decide(share, limit, 101).wait(0)).toBe(Number.POSITIVE_INFINITY)
  })

  it('a share is not given anew by a store that comes and goes', () => {
    const limits = [
      slidingWindowLog({ limit: 10, window: '1m' }),
      slidingWindowCounter({ limit: 10, window: '1m', buckets: 6 }),
      tokenBucket({ capacity: 10, refillPerSecond: 0.01 }),
    ]
    for (const limit of limits) {
      const clock = manualClock()
      const share = new LocalShare(clock, () => 1)
      let admitted = 0
      for (let outage = 0; outage < 8; outage++) {
        tell(share, limit, 9)
        clock.advanceMs(10)
        for (let time = 0; time < 3; time++) if (admits(share, limit)) admitted++
      }
      // Of the first outage's ten one is Redis' own; the later ones no longer count it, and find the others used.
      expect(admitted, limit.algorithm.name).toBeGreaterThanOrEqual(9)
      expect(admitted, limit.algorithm.name).toBeLessThanOrEqual(10)
    }
  })

  it('the share of a bucket is not given twice to a process that was alone and no longer is', () => {
    const clock = manualClock()
    let live = 1
    const share = new LocalShare(clock, () => live)
    const limit = tokenBucket({ capacity: 100, refillPerSecond: 50 })
    const drain = (): number => {
      let admitted = 0
      while (admits(share, limit)) admitted++
      return admitted
    }
    tell(share, limit, 40)
    decide(share, limit)
    // Units charged for the others have been refilled, at the rate of one who is alone.
    clock.advanceMs(2_000)
    live = 8
    expect(drain()).toBe(12)
    tell(share, limit, 90)
    expect(drain()).toBe(0)
  })

  it('a share has room again when the store says so: what was kept for others is not kept twice', () => {
    const clock = manualClock()
    const share = new LocalShare(clock, () => 1)
    const limit = slidingWindowLog({ limit: 10, window: '1m' })
    const remaining = (units: number): number => {
      tell(share, limit, units)
      return decide(share, limit, 1, true).left(0)
    }
    expect(remaining(0)).toBe(0)
    clock.advanceMs(1_000)
    expect(remaining(7)).toBe(7)
  })
})
