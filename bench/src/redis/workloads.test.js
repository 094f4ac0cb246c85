import { describe, expect, it } from 'vitest'
import { createWorkload, WORKLOAD_IDS } from './workloads.js'

/** Counts the denials in one lap of a limiter that counts exactly. @param {readonly string[]} keys @param {number} limit */
function deniedBy(keys, limit) {
  /** @type {Map<string, number>} */
  const used = new Map()
  let denied = 0
  for (const key of keys) {
    const count = (used.get(key) ?? 0) + 1
    used.set(key, count)
    if (count > limit) denied++
  }
  return denied
}

describe('workloads', () => {
  it.each(WORKLOAD_IDS)('workload (%s) says how many of a lap are denied, alone and in flight', id => {
    for (const inFlight of [1, 64, 512]) {
      const { lap, rules, deniedPerLap } = createWorkload(id, inFlight)
      expect(deniedBy(lap(0), rules[0]?.limit ?? 0)).toBe(deniedPerLap)
    }
  })

  it('workload (b) denies 30 % and (c) 99 %', () => {
    for (const [id, share] of /** @type {const} */ ([
      ['b', 0.3],
      ['c', 0.99],
    ])) {
      const { lap, deniedPerLap } = createWorkload(id, 512)
      expect(Number(deniedPerLap) / lap(0).length).toBeCloseTo(share, 2)
    }
  })

  it('laps in which a limit is reached share no key', () => {
    for (const id of /** @type {const} */ (['b', 'c'])) {
      const { lap } = createWorkload(id, 512)
      const first = new Set(lap(0))
      expect(lap(1).some(key => first.has(key))).toBe(false)
    }
  })
})
