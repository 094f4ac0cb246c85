/** An upstream of known capacity in virtual time, and what the limit makes of it. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { fixedLimit, type Limiting, type Phase, playUpstream } from '../../test/support/queueing-upstream.js'
import { seededRandom } from '../testing/seeded-random.js'
import { type Flight, LatencyGradient } from './latency-gradient.js'

const FIXED = [2, 8, 20, 32, 64, 150]
const WHOLE = { workers: 20, serviceMs: 50 }

/** Full capacity, a tenth of it, and full capacity again, ten seconds each. */
function dipTo(tenth: Omit<Phase, 'fromMs'>, whole: Omit<Phase, 'fromMs'> = WHOLE): Phase[] {
  return [
    { fromMs: 0, ...whole },
    { fromMs: 10_000, ...tenth },
    { fromMs: 20_000, ...whole },
  ]
}

function play(limiting: Limiting, phases: readonly Phase[], load: number) {
  const [{ workers, serviceMs }] = phases as [Phase]
  const rate = (load * workers * 1_000) / serviceMs
  return playUpstream({ phases, untilMs: 30_000, rate, patienceMs: 1_000, limiting, random: seededRandom(7) })
}

function between(usefulAtMs: readonly number[], fromMs: number, toMs: number): number {
  return usefulAtMs.filter(atMs => atMs >= fromMs && atMs < toMs).length
}

describe('an upstream whose capacity drops to a tenth and comes back', () => {
  it.each([
    ['fewer at once', dipTo({ workers: 2, serviceMs: 50 })],
    ['each takes longer', dipTo({ workers: 20, serviceMs: 500 })],
    ['both', dipTo({ workers: 6, serviceMs: 150 })],
    ['a large one', dipTo({ workers: 6, serviceMs: 50 }, { workers: 60, serviceMs: 50 })],
  ])('%s: at least 80 % of the best fixed limit, and all of it again within three seconds', (_, phases) => {
    for (const load of [0.7, 2]) {
      const best = Math.max(...FIXED.map(limit => play(fixedLimit(limit), phases, load).usefulAtMs.length))
      const { usefulAtMs } = play(new LatencyGradient({ floor: 1, ceiling: 1_000 }, 0), phases, load)
      expect(usefulAtMs.length / best).toBeGreaterThan(0.85)
      const [before, after] = [between(usefulAtMs, 9_000, 10_000), between(usefulAtMs, 23_000, 24_000)]
      expect(after / before).toBeGreaterThan(0.8)
    }
  })

  it('answers during the dip do not take ten times as long', () => {
    const phases = dipTo({ workers: 2, serviceMs: 50 })
    const { limits } = play(new LatencyGradient({ floor: 1, ceiling: 1_000 }, 0), phases, 3)
    // Two at once and as many again in the queue; it takes a few windows to find out.
    expect(Math.max(...limits.slice(160, 200))).toBeLessThan(10)
  })
})

it('a steady upstream gets the load it can sustain, whatever is offered', () => {
  for (const load of [1.3, 3, 10]) {
    const limiting = new LatencyGradient({ floor: 1, ceiling: 1_000 }, 0)
    const { limits, usefulAtMs } = play(limiting, [{ fromMs: 0, ...WHOLE }], load)
    // The capacity is 400 a second.
    expect(between(usefulAtMs, 5_000, 30_000) / 25).toBeGreaterThan(370)
    expect(Math.max(...limits.slice(50))).toBeLessThan(80)
  }
})

it('a limit that nobody uses does not grow', () => {
  const limiting = new LatencyGradient({ floor: 2, ceiling: 1_000 }, 0)
  const { limits } = play(limiting, [{ fromMs: 0, ...WHOLE }], 0.2)
  expect(Math.max(...limits)).toBeLessThan(20)
})

describe('windows', () => {
  const window = (limit: LatencyGradient, nowUs: number, latencyUs: number, load: number) => {
    for (let index = 0; index < 10; index++) limit.answered(limit.begin(load, nowUs - latencyUs), nowUs)
  }

  it('the limit doubles until answers take longer; from then on it grows by its root', () => {
    const limit = new LatencyGradient({ floor: 4, ceiling: 100 }, 0)
    window(limit, 100_000, 10_000, 4)
    window(limit, 200_000, 10_000, 8)
    expect(limit.limit).toBe(16)
    window(limit, 300_000, 30_000, 16)
    expect(limit.limit).toBe(12)
    window(limit, 400_000, 10_000, 12)
    expect(limit.limit).toBe(15)
  })

  it('requests that began before a change of the limit say nothing about it', () => {
    const limit = new LatencyGradient({ floor: 4, ceiling: 100 }, 0)
    const early = Array.from({ length: 100 }, () => limit.begin(4, 0))
    window(limit, 100_000, 10_000, 4)
    for (const flight of early) limit.answered(flight, 1_000_000)
    expect([limit.limit, limit.restUs()]).toEqual([8, 10_000])
  })

  it('a failure lowers the limit by its share, an abandoned request by how long it waited', () => {
    const failing = new LatencyGradient({ floor: 5, ceiling: 100 }, 0)
    for (let at = 1; at < 8; at++) window(failing, at * 100_000, 10_000, failing.limit)
    expect(failing.limit).toBe(100)
    for (let index = 0; index < 10; index++) failing.failed(failing.begin(100, 800_000), 800_000)
    expect(failing.limit).toBe(60)
    for (let index = 0; index < 10; index++) failing.abandoned(failing.begin(60, 899_000), 900_000)
    expect(failing.limit).toBe(60)
    // All are given up, so it falls to what is still answered: nothing.
    for (let index = 0; index < 10; index++) failing.abandoned(failing.begin(60, 960_000), 1_000_000)
    expect(failing.limit).toBe(5)
  })

  it('requests that are given up never raise the latency at rest, at whatever load', () => {
    const limit = new LatencyGradient({ floor: 5, ceiling: 100 }, 0)
    for (let at = 1; at < 8; at++) window(limit, at * 100_000, 10_000, limit.limit)
    for (let at = 8; at < 200; at++) {
      const flights = Array.from({ length: limit.limit }, () =>
        limit.begin(limit.limit, at * 100_000 - 60_000),
      )
      for (const flight of flights) limit.abandoned(flight, at * 100_000)
    }
    expect(limit.restUs()).toBe(10_000)
    expect(limit.limit).toBeLessThanOrEqual(10)
  })

  it('requests that get no answer lower the limit before anybody gives up', () => {
    const limit = new LatencyGradient({ floor: 5, ceiling: 100 }, 0)
    for (let at = 1; at < 8; at++) window(limit, at * 100_000, 10_000, limit.limit)
    for (let index = 0; index < 100; index++) limit.begin(index + 1, 701_000)
    for (let atUs = 701_000; atUs <= 790_000; atUs += 1_000) limit.look(atUs)
    expect(limit.limit).toBe(100)
    for (let atUs = 791_000; atUs <= 811_000; atUs += 1_000) limit.look(atUs)
    expect(limit.limit).toBe(5)
  })

  it('a pause of this process is not one of the upstream', () => {
    const limit = new LatencyGradient({ floor: 5, ceiling: 100 }, 0)
    for (let at = 1; at < 8; at++) window(limit, at * 100_000, 10_000, limit.limit)
    for (let index = 0; index < 100; index++) limit.begin(index + 1, 701_000)
    limit.look(701_000)
    limit.look(1_701_000)
    expect(limit.limit).toBe(100)
  })

  it('a slow kind of request does not set the latency of a fast one', () => {
    const limit = new LatencyGradient({ floor: 10, ceiling: 1_000 }, 0)
    for (let at = 1; at <= 40; at++) {
      const nowUs = at * 100_000
      for (let index = 0; index < 8; index++) {
        limit.answered(limit.begin(limit.limit, nowUs - 2_000_000, '/slow'), nowUs)
        limit.answered(limit.begin(limit.limit, nowUs - 10_000, '/fast'), nowUs)
      }
    }
    expect([limit.restUs('/slow'), limit.restUs('/fast')]).toEqual([2_000_000, 10_000])
    expect(limit.limit).toBeGreaterThan(500)
  })

  it('an upstream that has become slower by itself is not held down for it', () => {
    const limiting = new LatencyGradient({ floor: 1, ceiling: 1_000 }, 0)
    const slower = [
      { fromMs: 0, workers: 100, serviceMs: 10 },
      { fromMs: 10_000, workers: 100, serviceMs: 200 },
    ]
    const { limits } = play(limiting, slower, 1)
    expect(limiting.restUs()).toBeGreaterThan(150_000)
    expect(limits.at(-1)).toBeGreaterThan(80)
  })
})

it('the limit always stays between floor and ceiling, and never gets stuck while answers are fast', () => {
  const step = fc.record({
    kind: fc.constantFrom('answered', 'failed', 'abandoned', 'look'),
    latencyUs: fc.oneof(fc.integer({ min: 0, max: 1_000 }), fc.integer({ min: 0, max: 60_000_000 })),
    laterUs: fc.integer({ min: 0, max: 500_000 }),
    load: fc.double({ min: 0, max: 1, noNaN: true }),
    isLate: fc.boolean(),
  })
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 50 }),
      fc.integer({ min: 0, max: 500 }),
      fc.array(step, { maxLength: 400 }),
      (floor, more, steps) => {
        const ceiling = floor + more
        const limit = new LatencyGradient({ floor, ceiling }, 0)
        let nowUs = 0
        const late: Flight[] = []
        for (const { kind, latencyUs, laterUs, load, isLate } of steps) {
          const flight = limit.begin(Math.ceil(load * limit.limit), nowUs + laterUs - latencyUs)
          nowUs += laterUs
          if (isLate) late.push(flight)
          else if (kind === 'look') {
            limit.look(nowUs)
            limit.forget(flight)
          } else limit[kind](flight, nowUs)
          if (late.length > 5) limit.answered(late.shift() as Flight, nowUs)
          expect(limit.limit).toBeGreaterThanOrEqual(floor)
          expect(limit.limit).toBeLessThanOrEqual(ceiling)
        }
        for (const flight of late) limit.answered(flight, nowUs)
        // After a hundred good windows under full load it has reached the ceiling, except while probing.
        let highest = 0
        for (let good = 0; good < 1_500; good++) {
          nowUs += 20_000
          limit.answered(limit.begin(limit.limit, nowUs - 1_000), nowUs)
          highest = Math.max(highest, limit.limit)
        }
        expect(highest).toBe(ceiling)
      },
    ),
    { numRuns: 150 },
  )
})
