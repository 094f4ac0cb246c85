import { describe, expect, it } from 'vitest'
import type { LogLimit } from '../../src/algorithms/sliding-window-log.js'
import { slidingWindowLog, slidingWindowLogAlgorithm } from '../../src/algorithms/sliding-window-log.js'
import { algorithmOf } from './driver.js'

const NOW_US = 1_700_000_000_000_000
const MAX_UNITS = 2 ** 32 - 1

const log = algorithmOf(slidingWindowLog({ limit: 1, window: '1m' }))

function limitOf(limit: number, windowUs: number): LogLimit {
  return { ...slidingWindowLog({ limit, window: '1m' }), windowUs }
}

describe('the running totals of a log', () => {
  it('the running totals of a log start again from zero at 2^32, with entries still in the window', () => {
    const limit = limitOf(MAX_UNITS, 1_000)
    const state = slidingWindowLogAlgorithm.empty()
    const half = Math.floor(MAX_UNITS / 2)
    for (let count = 0; count < 5_000; count++) {
      const nowUs = NOW_US + count * 500
      expect(log.waitUs(limit, state, half, nowUs)).toBe(0)
      log.charge(limit, state, half, nowUs)
      expect(state.totals[state.end - 1]).toBeLessThanOrEqual(MAX_UNITS)
      // This one and the one half a window ago; the one before that has just left.
      const left = MAX_UNITS - (count === 0 ? 1 : 2) * half
      expect(log.remaining(limit, state, nowUs)).toBe(left)
      if (count > 0) expect(log.waitUs(limit, state, left + 1, nowUs)).toBe(500)
    }
    expect(log.refund(limit, state, MAX_UNITS, null, NOW_US + 4_999 * 500)).toBe(2 * half)
    expect(log.remaining(limit, state, NOW_US + 4_999 * 500)).toBe(MAX_UNITS)
  })

  it('the running totals do not make the log grow with the requests it has ever seen', () => {
    const limit = limitOf(10, 1_000_000)
    const state = slidingWindowLogAlgorithm.empty()
    let longest = 0
    for (let count = 0; count < 100_000; count++) {
      const nowUs = NOW_US + count * 100_000
      if (log.waitUs(limit, state, 1, nowUs) === 0) log.charge(limit, state, 1, nowUs)
      longest = Math.max(longest, state.end - state.first)
    }
    expect(longest).toBeLessThanOrEqual(10)
  })

  it('a request costs the log one entry, not one a unit', () => {
    const limit = limitOf(MAX_UNITS, 1_000_000)
    const state = slidingWindowLogAlgorithm.empty()
    log.charge(limit, state, 4_000_000_000, NOW_US)
    expect(state.end - state.first).toBe(1)
  })
})

describe('the edge of the window', () => {
  it('an entry counts until exactly one window after it was written', () => {
    const limit = limitOf(1, 1_000_000)
    const state = slidingWindowLogAlgorithm.empty()
    log.charge(limit, state, 1, NOW_US)
    expect(log.waitUs(limit, state, 1, NOW_US + 999_999)).toBe(1)
    expect(log.waitUs(limit, state, 1, NOW_US + 1_000_000)).toBe(0)
  })

  it('a denial waits for as many entries to leave as the cost needs, no more', () => {
    const limit = limitOf(5, 1_000_000)
    const state = slidingWindowLogAlgorithm.empty()
    for (let count = 0; count < 5; count++) log.charge(limit, state, 1, NOW_US + count * 100)
    for (let cost = 1; cost <= 5; cost++) {
      expect(log.waitUs(limit, state, cost, NOW_US + 400)).toBe(1_000_000 - 400 + (cost - 1) * 100)
    }
  })
})
