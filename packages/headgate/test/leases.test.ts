/**
 * Leases in a fleet of processes over one engine that answers late: whatever they take, spend, give back or lose in
 * a crash, the admissions keep the promise of the limit.
 */
import { describe, expect, it } from 'vitest'
import type { Limit } from '../src/algorithms/algorithm.js'
import { quota } from '../src/algorithms/quota.js'
import { slidingWindowCounter } from '../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../src/algorithms/token-bucket.js'
import { leaseLimits } from '../src/policy/leases.js'
import { type Answer, askStore } from '../src/store/ask-store.js'
import { memoryStore } from '../src/store/memory/memory-store.js'
import type { Store } from '../src/store/store.js'
import { manualClock } from '../src/testing/manual-clock.js'
import { seededRandom } from '../src/testing/seeded-random.js'
import { type Admission, checkBounds } from './redis-proofs/bounds.js'
import { manualTimers, settled } from './support/manual-timers.ts'
import { slowRemote } from './support/slow-remote.ts'

const SEEDS = 400
const STEPS = 400
const PROCESSES = 4

const LIMITS: readonly Limit[] = [
  slidingWindowLog({ limit: 60, window: '1s' }),
  slidingWindowCounter({ limit: 60, window: '1s' }),
  slidingWindowCounter({ limit: 60, window: '1s', buckets: 20 }),
  tokenBucket({ capacity: 60, refillPerSecond: 60 }),
]

const leased = (limit: Limit): Limit => leaseLimits('lease', [limit], { max: 40, ttl: '50ms' })[0] as Limit

/** Plays a fleet that asks for one key as fast as it can. Returns the admissions and their times. */
async function play(
  seed: number,
  limits: readonly Limit[],
  fromUs?: number,
): Promise<{ admissions: Admission[]; leasedOnes: number }> {
  const dice = seededRandom(seed)
  const random = (below: number): number => Math.floor(dice() * below)
  const clock = manualClock(fromUs)
  clock.advanceUs(random(1_000_000))
  const late = slowRemote(memoryStore({ clock }))
  const ticking = manualTimers()
  const start = (): Store =>
    late.open({ clock, timers: ticking.timers, processes: PROCESSES, deadlineMs: 60_000 })
  const fleet = Array.from({ length: PROCESSES }, start)
  const admissions: Admission[] = []
  let leasedOnes = 0

  const note = (answer: Answer, cost: number): void => {
    if (answer.charged < 0) return
    if (answer.leased) leasedOnes++
    // A leased unit is spent now; any other was charged when the engine said.
    const atUs = answer.leased ? clock.nowUs() : (answer.verdicts[0]?.[0]?.chargedAtUs ?? clock.nowUs())
    admissions.push({ atUs, cost })
  }

  for (let step = 0; step < STEPS; step++) {
    const which = random(PROCESSES)
    const cost = random(6) === 0 ? 1 + random(3) : 1
    const checks = limits.map(limit => ({
      subject: 'user:1',
      scope: 'global',
      name: `p.${limit.id}`,
      limit,
      cost,
    }))
    const answer = askStore(fleet[which] as Store, { alternatives: [checks], shadow: [] })
    if (answer instanceof Promise) void answer.then(given => note(given, cost))
    else note(answer, cost)
    if (random(3) > 0) late.letThrough(random(4) === 0 ? 1 : undefined)
    await settled()
    if (random(2) === 0) clock.advanceUs(random(8) === 0 ? random(200_000) : random(4_000))
    if (random(10) === 0) ticking.run()
    // A process that dies loses the units it held.
    if (random(60) === 0) fleet[which] = start()
    if (random(60) === 0) {
      const closing = fleet[which] as Store
      fleet[which] = start()
      void closing.close()
    }
    await settled()
  }
  return { admissions: admissions.sort((a, b) => a.atUs - b.atUs), leasedOnes }
}

describe('leases', () => {
  it.each(LIMITS)('leases admit no more than was promised, in any history of a fleet: $id', async limit => {
    let leasedOnes = 0
    for (let seed = 1; seed <= SEEDS; seed++) {
      const played = await play(seed, [leased(limit)])
      leasedOnes += played.leasedOnes
      for (const { promise, worst, bound } of checkBounds(limit, played.admissions)) {
        if (worst > bound) expect({ seed, promise, worst }).toEqual({ seed, promise, worst: bound })
      }
    }
    expect(leasedOnes).toBeGreaterThan((SEEDS * STEPS) / 20)
  })

  it('leases admit no more than a quota on either side of the end of its period, in any history of a fleet', async () => {
    const limit = quota({ limit: 60, per: 'day' })
    const endUs = Date.parse('2027-03-01') * 1_000
    const most = { before: 0, after: 0 }
    let leasedOnes = 0
    for (let seed = 1; seed <= SEEDS; seed++) {
      const played = await play(seed, [leased(limit)], endUs - 1_200_000)
      leasedOnes += played.leasedOnes
      const before = played.admissions.reduce((sum, { atUs, cost }) => sum + (atUs < endUs ? cost : 0), 0)
      const after = played.admissions.reduce((sum, { atUs, cost }) => sum + (atUs < endUs ? 0 : cost), 0)
      if (before > 60 || after > 60) expect({ seed, before, after }).toEqual({ seed, before: 60, after: 60 })
      most.before = Math.max(most.before, before)
      most.after = Math.max(most.after, after)
    }
    expect(most).toEqual({ before: 60, after: 60 })
    expect(leasedOnes).toBeGreaterThan(SEEDS)
  })

  it('leases hold for every limit of a policy at once', async () => {
    const limits = leaseLimits('lease', LIMITS.slice(0, 2).concat(LIMITS[3] as Limit), {
      max: 40,
      ttl: '50ms',
    })
    for (let seed = 1; seed <= 100; seed++) {
      const { admissions } = await play(seed, limits)
      for (const limit of [LIMITS[0], LIMITS[1], LIMITS[3]] as Limit[]) {
        for (const { worst, bound } of checkBounds(limit, admissions))
          expect(worst).toBeLessThanOrEqual(bound)
      }
    }
  })
})
