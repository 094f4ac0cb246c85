import { expect, it } from 'vitest'
import { figuresOf, slicesOf } from './figures.js'

/** Makes one request every millisecond. With limits on, one in twenty is denied. `latency` gives each response's time. */
function requestsOf(/** @type {number} */ lengthMs, /** @type {(dueMs: number) => number} */ latency) {
  const dueMs = Float64Array.from({ length: lengthMs }, (_, index) => index)
  return {
    dueMs,
    latencyMs: dueMs.map(latency),
    lateMs: dueMs.map(() => 0.5),
    withQuota: Uint8Array.from(dueMs, () => 1),
    status: Uint16Array.from(dueMs, at => (Math.floor(at / 5_000) % 2 === 0 && at % 20 === 0 ? 429 : 200)),
  }
}

it('limits on and off are counted apart, without the time in which one becomes the other', () => {
  const slices = slicesOf(0, 20_000)
  expect(slices.map(({ isOn }) => isOn)).toEqual([true, false, true, false])
  const { on, off, overheadP99Ms, responsesPerSecond } = figuresOf(
    requestsOf(20_000, at => (Math.floor(at / 5_000) % 2 === 0 ? 3 : 2)),
    slices,
    { fromMs: 0, toMs: 20_000 },
  )
  expect(on).toMatchObject({ requests: 2 * 3_800, denied: 2 * 190, failed: 0 })
  expect(off).toMatchObject({ requests: 2 * 3_800, denied: 0 })
  expect(overheadP99Ms).toBeCloseTo(1)
  expect(responsesPerSecond).toBeCloseTo(1_000, -1)
})

it('a response that never came is a failure, and does not make the others look slow', () => {
  const requests = requestsOf(4_000, () => 1)
  requests.latencyMs[3_999] = Number.NaN
  requests.status[3_999] = 0
  requests.status[3_998] = 503
  const { off, failures } = figuresOf(requests, slicesOf(0, 4_000), { fromMs: 0, toMs: 4_000 })
  expect(off.failed).toBe(2)
  expect(failures).toEqual([
    { status: 503, count: 1 },
    { status: 0, count: 1 },
  ])
  expect(off.latency.maxMs).toBe(1)
})
