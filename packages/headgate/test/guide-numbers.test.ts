import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import type { Limit } from '../src/algorithms/algorithm.js'
import { slidingWindowCounter } from '../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../src/algorithms/token-bucket.js'
import { createLimiter } from '../src/limiter/limiter.js'
import { manualClock } from '../src/testing/index.js'

const STEP_MS = 100

/** Returns when a caller who asks every tenth of a second is admitted within an hour, in milliseconds. */
async function admissions(limit: Limit): Promise<number[]> {
  const clock = manualClock()
  const limiter = createLimiter({ clock, policies: { api: limit } })
  const times: number[] = []
  for (let nowMs = 0; nowMs < 3_600_000; nowMs += STEP_MS) {
    while ((await limiter.check('user:1', { policy: 'api' })).allowed) times.push(nowMs)
    clock.advanceMs(STEP_MS)
  }
  return times
}

function mostWithin(times: readonly number[], windowMs: number): number {
  let first = 0
  return times.reduce((most, time, index) => {
    while (time - (times[first] as number) >= windowMs) first++
    return Math.max(most, index - first + 1)
  }, 0)
}

const window = '1m'
const ROWS: [
  string,
  Limit,
  { readonly second: number; readonly minute: number; readonly hour: [number, number] },
][] = [
  ['log', slidingWindowLog({ limit: 100, window }), { second: 100, minute: 100, hour: [6_000, 6_000] }],
  [
    'counter',
    slidingWindowCounter({ limit: 100, window }),
    { second: 100, minute: 199, hour: [5_900, 6_000] },
  ],
  [
    'counter, 10 buckets',
    slidingWindowCounter({ limit: 100, window, buckets: 10 }),
    { second: 100, minute: 100, hour: [5_400, 5_600] },
  ],
  [
    'bucket of 100, 100/60 a second',
    tokenBucket({ capacity: 100, refillPerSecond: 100 / 60 }),
    { second: 101, minute: 199, hour: [6_099, 6_099] },
  ],
]

it.each(ROWS)('the guide is right about a %s', async (name, limit, { second, minute, hour }) => {
  const times = await admissions(limit)
  expect(times.filter(time => time < 1_000)).toHaveLength(second)
  // The worst minute of a counter takes better timing than asking all the time; its bound is a law of its own.
  const most = mostWithin(times, 60_000)
  if (name === 'counter') expect(most).toBeLessThanOrEqual(minute)
  else expect(most).toBe(minute)
  expect(times.length).toBeGreaterThanOrEqual(hour[0])
  expect(times.length).toBeLessThanOrEqual(hour[1])
  const guide = readFileSync(new URL('../../../docs/guide/algorithms.md', import.meta.url), 'utf8')
  expect(guide).toContain(`| ${name} | ${second} |`)
})
