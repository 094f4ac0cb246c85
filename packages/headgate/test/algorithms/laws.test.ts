/** The laws every algorithm keeps: denial and peek write nothing, refund undoes, changed numbers keep the usage. */

import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type Limit, NEVER } from '../../src/algorithms/algorithm.js'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { isTokenBucket } from '../support/limit-kinds.js'
import { anyLimit, cost, costUnits, gap, periodUs, scaled, startUs } from './arbitraries.js'
import { algorithmOf, copyOf, live, request, type State } from './driver.js'

const life = fc.array(fc.record({ gap, cost }), { maxLength: 20 })
const NOW_US = 1_700_000_040_000_000
const UNLIMITED_UNITS = 2 ** 32 - 1

/** Returns the units that count now, as a limit with ample room sees them. */
function used(limit: Limit, state: State, nowUs: number): number {
  const ample = { ...limit, limit: UNLIMITED_UNITS }
  return UNLIMITED_UNITS - algorithmOf(limit).remaining(ample, state, nowUs)
}

const four: [string, Limit][] = [
  ['sliding-window log', slidingWindowLog({ limit: 10, window: '1m' })],
  ['sliding-window counter', slidingWindowCounter({ limit: 10, window: '1m' })],
  ['sliding-window counter in buckets', slidingWindowCounter({ limit: 10, window: '1m', buckets: 6 })],
  ['token bucket', tokenBucket({ capacity: 10, refillPerSecond: 10 / 60 })],
]
const windowed = four.slice(0, 3)

describe('a denial and a look', () => {
  it('a denial and a look change nothing: the state is deeply equal before and after', () => {
    fc.assert(
      fc.property(anyLimit, startUs, life, cost, (limit, startUs, requests, cost) => {
        const algorithm = algorithmOf(limit)
        const { state, nowUs } = live(limit, startUs, requests)
        const before = copyOf(limit, state)
        algorithm.remaining(limit, state, nowUs)
        algorithm.resetAfterUs(limit, state, nowUs)
        algorithm.keepForUs(limit, state, nowUs)
        const asked = costUnits(limit, cost)
        for (const units of [asked, limit.limit, limit.limit + 1, UNLIMITED_UNITS]) {
          if (algorithm.waitUs(limit, state, units, nowUs) > 0) request(limit, state, units, nowUs)
        }
        expect(state).toEqual(before)
      }),
      { numRuns: 4_000 },
    )
  })

  it('a cost above the capacity gets NEVER, and any other cost a time', () => {
    fc.assert(
      fc.property(anyLimit, startUs, life, cost, (limit, startUs, requests, cost) => {
        const { state, nowUs } = live(limit, startUs, requests)
        const waitOf = (units: number) => algorithmOf(limit).waitUs(limit, state, units, nowUs)
        expect(waitOf(limit.limit + 1)).toBe(NEVER)
        expect(waitOf(UNLIMITED_UNITS + 1)).toBe(NEVER)
        const units = costUnits(limit, cost)
        expect(Number.isFinite(waitOf(units))).toBe(units <= limit.limit)
        expect(waitOf(limit.limit)).toBeLessThanOrEqual(2 * periodUs(limit) + 2)
      }),
      { numRuns: 3_000 },
    )
  })

  it('remaining and verdict agree: what remains fits, and one more does not', () => {
    fc.assert(
      fc.property(anyLimit, startUs, life, (limit, startUs, requests) => {
        const { state, nowUs } = live(limit, startUs, requests)
        const left = algorithmOf(limit).remaining(limit, state, nowUs)
        expect(algorithmOf(limit).waitUs(limit, state, left, nowUs)).toBe(0)
        expect(algorithmOf(limit).waitUs(limit, state, left + 1, nowUs)).toBeGreaterThan(0)
        expect(algorithmOf(limit).resetAfterUs(limit, state, nowUs) === 0).toBe(
          isTokenBucket(limit) ? isFull(state, nowUs, limit) : left === limit.limit,
        )
      }),
      { numRuns: 3_000 },
    )
  })

  it.each(four)('%s of 0 is a ban: no unit ever, and nothing is owed', (_, original) => {
    const limit = { ...original, limit: 0 }
    const state = algorithmOf(limit).empty()
    expect(algorithmOf(limit).waitUs(limit, state, 1, NOW_US)).toBe(NEVER)
    expect(algorithmOf(limit).waitUs(limit, state, 0, NOW_US)).toBe(0)
    expect(algorithmOf(limit).remaining(limit, state, NOW_US)).toBe(0)
    expect(algorithmOf(limit).resetAfterUs(limit, state, NOW_US)).toBe(0)
  })
})

describe('a refund', () => {
  it('a refund of the last charge, at once, undoes it for every later verdict', () => {
    fc.assert(
      fc.property(anyLimit, startUs, life, cost, fc.boolean(), (limit, startUs, requests, cost, later) => {
        const algorithm = algorithmOf(limit)
        const { state, nowUs } = live(limit, startUs, requests)
        const before = copyOf(limit, state)
        const units = costUnits(limit, cost)
        const { chargedAtUs } = request(limit, state, units, nowUs)
        if (chargedAtUs === null) return
        expect(algorithm.refund(limit, state, units, chargedAtUs, nowUs)).toBe(units)
        const atUs = nowUs + (later ? Math.floor(periodUs(limit) / 3) : 0)
        for (const asked of [1, units, limit.limit]) {
          const waitUs = algorithm.waitUs(limit, state, asked, atUs)
          const unasked = algorithm.waitUs(limit, before, asked, atUs)
          // A bucket rounds its refill down once more when it is written.
          const slackUs = isTokenBucket(limit) ? Math.ceil(2 / limit.refillPerSecond) + 1 : 0
          expect(Math.abs(waitUs - unasked)).toBeLessThanOrEqual(slackUs)
        }
      }),
      { numRuns: 4_000 },
    )
  })

  it('a refund never gives back more than counts, and never frees more than it gives', () => {
    fc.assert(
      fc.property(anyLimit, startUs, life, cost, gap, (limit, startUs, requests, cost, gap) => {
        const { state, nowUs } = live(limit, startUs, [...requests, { gap, cost: { units: 0 } }])
        const algorithm = algorithmOf(limit)
        const usedBefore = used(limit, state, nowUs)
        const units = costUnits(limit, cost)
        const given = algorithm.refund(limit, state, units, null, nowUs)
        expect(given).toBeLessThanOrEqual(units)
        expect(usedBefore - used(limit, state, nowUs)).toBeLessThanOrEqual(given)
        expect(algorithm.remaining(limit, state, nowUs)).toBeLessThanOrEqual(limit.limit)
      }),
      { numRuns: 3_000 },
    )
  })

  it('a refund brings nothing back that has left, not even when the clock steps back afterwards', () => {
    const half = fc.integer({ min: 0, max: 500 })
    fc.assert(
      fc.property(anyLimit, startUs, life, cost, half, (limit, startUs, requests, cost, back) => {
        const { state, nowUs } = live(limit, startUs, requests)
        const before = copyOf(limit, state)
        algorithmOf(limit).refund(limit, state, costUnits(limit, cost), null, nowUs)
        const steppedUs = nowUs - Math.floor((periodUs(limit) / 1_000) * back)
        // Except for a state too far ahead to be believed: what is forgotten is not used.
        const usedBefore = used(limit, before, steppedUs)
        if (usedBefore > 0) expect(used(limit, state, steppedUs)).toBeLessThanOrEqual(usedBefore)
      }),
      { numRuns: 3_000 },
    )
  })

  it.each(windowed)('%s: a refund with its time takes that charge, not an older one', (_, limit) => {
    const algorithm = algorithmOf(limit)
    const state = algorithm.empty()
    request(limit, state, 3, NOW_US)
    const later = request(limit, state, 4, NOW_US + 15_000_000)
    expect(algorithm.refund(limit, state, 4, later.chargedAtUs, NOW_US + 16_000_000)).toBe(4)
    expect(used(limit, state, NOW_US + 16_000_000)).toBe(3)
    // The older charge is left: it leaves at its own time.
    expect(algorithm.refund(limit, state, 9, NOW_US, NOW_US + 16_000_000)).toBe(3)
    expect(algorithm.resetAfterUs(limit, state, NOW_US + 16_000_000)).toBe(0)
  })

  it.each(windowed)('%s: a refund without a time takes the oldest units', (_, limit) => {
    const algorithm = algorithmOf(limit)
    const state = algorithm.empty()
    request(limit, state, 3, NOW_US)
    request(limit, state, 4, NOW_US + 35_000_000)
    expect(algorithm.refund(limit, state, 5, null, NOW_US + 35_000_000)).toBe(5)
    // The rest belongs to the newer charge, and still counts when the older one would have left.
    expect(used(limit, state, NOW_US + 60_000_000)).toBe(2)
  })

  it.each(windowed)(
    '%s: a refund in part leaves the rest, and together they never exceed the charge',
    (_, limit) => {
      const algorithm = algorithmOf(limit)
      const state = algorithm.empty()
      request(limit, state, 6, NOW_US)
      expect(algorithm.refund(limit, state, 2, NOW_US, NOW_US)).toBe(2)
      expect(used(limit, state, NOW_US)).toBe(4)
      expect(algorithm.refund(limit, state, 6, NOW_US, NOW_US)).toBe(4)
      expect(algorithm.refund(limit, state, 6, NOW_US, NOW_US)).toBe(0)
      expect(algorithm.refund(limit, state, 6, null, NOW_US)).toBe(0)
      expect(used(limit, state, NOW_US)).toBe(0)
    },
  )

  it.each(windowed)('%s: a refund gives nothing back once the charge has left the window', (_, limit) => {
    const algorithm = algorithmOf(limit)
    const state = algorithm.empty()
    request(limit, state, 6, NOW_US)
    const goneUs = NOW_US + algorithm.resetAfterUs(limit, state, NOW_US)
    request(limit, state, 2, goneUs)
    expect(algorithm.refund(limit, state, 6, NOW_US, goneUs)).toBe(0)
    expect(used(limit, state, goneUs)).toBe(2)
  })

  it('a refund credits a bucket now, never above its capacity', () => {
    const limit = tokenBucket({ capacity: 10, refillPerSecond: 1 })
    const algorithm = algorithmOf(limit)
    const state = algorithm.empty()
    request(limit, state, 10, NOW_US)
    expect(algorithm.refund(limit, state, 4, NOW_US, NOW_US + 3_000_000)).toBe(4)
    expect(algorithm.remaining(limit, state, NOW_US + 3_000_000)).toBe(7)
    expect(algorithm.refund(limit, state, 9, NOW_US, NOW_US + 3_000_000)).toBe(3)
    expect(algorithm.remaining(limit, state, NOW_US + 3_000_000)).toBe(10)
    expect(algorithm.refund(limit, state, 9, NOW_US, NOW_US + 3_000_000)).toBe(0)
  })

  it('a refund keeps two requests of the same microsecond apart in the log', () => {
    const limit = slidingWindowLog({ limit: 10, window: '1m' })
    const algorithm = algorithmOf(limit)
    const state = algorithm.empty()
    for (let count = 0; count < 5; count++) request(limit, state, 2, NOW_US)
    expect(used(limit, state, NOW_US)).toBe(10)
    expect(algorithm.refund(limit, state, 2, NOW_US, NOW_US)).toBe(2)
    expect(used(limit, state, NOW_US)).toBe(8)
  })

  it('a refund leaves the log sound: later totals are lowered and it goes on counting exactly', () => {
    const limit = slidingWindowLog({ limit: 1_000, window: '1s' })
    const algorithm = algorithmOf(limit)
    const state = algorithm.empty()
    // Enough entries that some have left, some are compacted away, and the middle one is given back.
    let nowUs = NOW_US
    for (let count = 0; count < 300; count++, nowUs += 5_000) request(limit, state, 2, nowUs)
    const middleUs = nowUs - 500_000
    const before = used(limit, state, nowUs)
    expect(algorithm.refund(limit, state, 2, middleUs, nowUs)).toBe(2)
    expect(used(limit, state, nowUs)).toBe(before - 2)
    expect(used(limit, state, nowUs + 500_000)).toBe(198)
    expect(used(limit, state, nowUs + 1_000_000)).toBe(0)
  })
})

describe('changed numbers', () => {
  it('changed numbers keep what was used: only the limit it is held against is another', () => {
    fc.assert(
      fc.property(
        anyLimit,
        startUs,
        life,
        fc.integer({ min: 1, max: 400 }),
        (limit, startUs, requests, percent) => {
          const { state, nowUs } = live(limit, startUs, requests)
          const changed = scaled(limit, percent)
          const before = used(limit, state, nowUs)
          const left = algorithmOf(limit).remaining(changed, state, nowUs)
          if (isTokenBucket(limit) && changed.limit < limit.limit) {
            // A bucket made smaller is at worst empty, not in debt.
            expect(left).toBeGreaterThanOrEqual(Math.max(0, changed.limit - before))
          } else expect(left).toBe(Math.max(0, changed.limit - before))
        },
      ),
      { numRuns: 4_000 },
    )
  })

  it.each(four)(
    '%s: a limit lowered below the use denies, raised again admits the difference',
    (_, limit) => {
      const algorithm = algorithmOf(limit)
      const state = algorithm.empty()
      request(limit, state, 8, NOW_US)
      const lower = { ...limit, limit: 5 }
      const higher = { ...limit, limit: 20 }
      expect(algorithm.waitUs(lower, state, 1, NOW_US)).toBeGreaterThan(0)
      expect(algorithm.remaining(lower, state, NOW_US)).toBe(0)
      expect(algorithm.remaining(higher, state, NOW_US)).toBe(12)
      expect(request(higher, state, 12, NOW_US).waitUs).toBe(0)
      expect(algorithm.remaining(higher, state, NOW_US)).toBe(0)
    },
  )

  it.each(four)('%s: waiting as told holds under a lowered limit too', (_, limit) => {
    const algorithm = algorithmOf(limit)
    const state = algorithm.empty()
    request(limit, state, 6, NOW_US)
    request(limit, state, 4, NOW_US + 20_000_000)
    const lower = { ...limit, limit: 3 }
    for (const cost of [0, 1, 3]) {
      const waitUs = algorithm.waitUs(lower, state, cost, NOW_US + 20_000_000)
      expect(algorithm.waitUs(lower, state, cost, NOW_US + 20_000_000 + waitUs)).toBe(0)
      if (waitUs > 0) expect(algorithm.waitUs(lower, state, cost, NOW_US + 20_000_000 + waitUs - 1)).toBe(1)
    }
  })
})

/** Whether a bucket is full; one that lacks less than a token is not. */
function isFull(state: State, nowUs: number, limit: Limit): boolean {
  return algorithmOf(limit).refund(limit, copyOf(limit, state), 1, null, nowUs) === 0
}
