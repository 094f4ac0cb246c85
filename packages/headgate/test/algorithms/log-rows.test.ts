import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import type { LogState } from '../../src/algorithms/log-rows.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { algorithmOf, type State } from './driver.js'

const WINDOW_US = 1_000_000
const START_US = 1_800_000_000_000_000

describe('the rows of logs', () => {
  const step = fc.record({
    row: fc.nat({ max: 5 }),
    kind: fc.constantFrom('charge', 'charge', 'charge', 'charge', 'refund', 'reset', 'clear', 'former'),
    times: fc.integer({ min: 1, max: 60 }),
    elapsedUs: fc.constantFrom(0, 1_000, 50_000, 400_000, 1_200_000, -300_000, -3_000_000),
  })

  it('rows of logs that grow, shrink and are cleared beside each other are each what the algorithm says', () => {
    const limit = slidingWindowLog({ limit: 5_000, window: '1s' })
    const algorithm = algorithmOf(limit)
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), steps => {
        const rows = limit.algorithm.rows()
        const model = new Map<number, State>()
        let nowUs = START_US
        const both = (row: number, act: (state: State) => unknown) => {
          if (!model.has(row)) {
            model.set(row, algorithm.empty())
            rows.create(row)
          }
          expect(act(rows.at(row) as State)).toEqual(act(model.get(row) as State))
        }
        for (const { row, kind, times, elapsedUs } of steps) {
          nowUs += elapsedUs
          if (kind === 'clear') {
            if (model.delete(row)) rows.clear(row)
          } else if (kind === 'former') {
            if (model.has(row)) rows.clear(row)
            rows.create(row)
            rows.write(row, algorithm.usedUp(limit, nowUs + WINDOW_US / 2, nowUs))
            model.set(row, algorithm.usedUp(limit, nowUs + WINDOW_US / 2, nowUs))
          } else if (kind === 'refund') {
            both(row, state => algorithm.refund(limit, state, times, null, nowUs))
          } else if (kind === 'reset') {
            both(row, state => algorithm.reset(limit, state, nowUs))
          } else {
            for (let count = 0; count < times; count++, nowUs += 2_000) {
              both(row, state =>
                algorithm.waitUs(limit, state, 3, nowUs) === 0
                  ? algorithm.charge(limit, state, 3, nowUs)
                  : null,
              )
            }
          }
          for (const row of model.keys()) {
            both(row, state => [
              algorithm.remaining(limit, state, nowUs),
              algorithm.waitUs(limit, state, limit.limit, nowUs),
              algorithm.resetAfterUs(limit, state, nowUs),
            ])
          }
        }
      }),
      { numRuns: 400 },
    )
  })

  it('the entries of logs longer than a page of blocks lie beside short ones', () => {
    const limit = slidingWindowLog({ limit: 100_000, window: '1h' })
    const algorithm = algorithmOf(limit)
    const rows = limit.algorithm.rows()
    for (const row of [0, 1, 2]) rows.create(row)
    for (let count = 0; count < 40_000; count++) {
      for (const row of count < 3 ? [0, 1, 2] : [0, 1]) {
        algorithm.charge(limit, rows.at(row) as State, 1, START_US + count)
      }
    }
    const left = [0, 1, 2].map(row => algorithm.remaining(limit, rows.at(row) as State, START_US + 40_000))
    expect(left).toEqual([60_000, 60_000, 99_997])
  })

  it('a log whose entries have left the window gives the room of them back with its next entry', () => {
    const limit = slidingWindowLog({ limit: 50_000, window: '1s' })
    const algorithm = algorithmOf(limit)
    const state = limit.algorithm.rows().create(0) as LogState & { readonly times: Float64Array }
    for (let count = 0; count < 40_000; count++) algorithm.charge(limit, state, 1, START_US + count)
    expect(state.times.length).toBeGreaterThanOrEqual(40_000)
    algorithm.charge(limit, state, 1, START_US + 2 * WINDOW_US)
    expect(state.times.length).toBeLessThanOrEqual(2_048)
    expect(algorithm.remaining(limit, state, START_US + 2 * WINDOW_US)).toBe(49_999)
  })
})
