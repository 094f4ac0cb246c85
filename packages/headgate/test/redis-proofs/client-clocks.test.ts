/** Time is the store's. A process whose clock is wrong by an hour neither gets more nor gives others less. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.ts'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket.ts'
import type { Check } from '../../src/check/check.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { runWorkers, type SpendReport } from './workers.ts'

const HOUR_MS = 3_600_000
const SHIFTS_MS = [0, HOUR_MS, -HOUR_MS]
const UNITS = 10
/** Each process alone would use up the limits. */
const ASKS = 12

// Windows longer than the shift, and ones that a shifted clock would leave again and again.
const LIMITS: readonly Limit[] = [
  slidingWindowLog({ limit: UNITS, window: '1d' }),
  slidingWindowLog({ limit: UNITS, window: '10m' }),
  slidingWindowCounter({ limit: UNITS, window: '366d' }),
  slidingWindowCounter({ limit: UNITS, window: '366d', buckets: 1000 }),
  tokenBucket({ capacity: UNITS, refillPerSecond: 1 / 3600 }),
  tokenBucket({ capacity: UNITS, refillPerSecond: 1 / 600 }),
]

const CHECKS: readonly Check[] = LIMITS.map((limit, index) => ({
  subject: 'user:shared',
  scope: 'global',
  name: `proof${index}.${limit.id}`,
  limit,
  cost: 1,
}))

let redis: RedisProcess
let reports: SpendReport[]

beforeAll(async () => {
  redis = await startRedis()
  reports = await runWorkers(
    SHIFTS_MS.map((clockShiftMs, index) => ({
      job: 'spend',
      client: index === 1 ? 'node-redis' : 'ioredis',
      ports: [redis.port],
      cluster: false,
      recordCalls: true,
      checks: CHECKS,
      times: ASKS,
      clockShiftMs,
    })),
  )
})
afterAll(() => redis?.stop())

it('processes an hour ahead and an hour behind share every limit exactly with one that is right', () => {
  for (const [index, { unixMs }] of reports.entries()) {
    expect(Math.abs(unixMs - Date.now() - (SHIFTS_MS[index] as number))).toBeLessThan(60_000)
  }
  for (const [index, limit] of LIMITS.entries()) {
    const answers = reports.flatMap(report =>
      report.answers.filter((_, position) => position % LIMITS.length === index),
    )
    expect(answers).toHaveLength(SHIFTS_MS.length * ASKS)
    expect(answers.filter(answer => answer.charged === 0).length, limit.id).toBe(UNITS)
  }
})

it('the bytes that are sent do not depend on the clock of the sender', () => {
  const [right, ahead, behind] = reports.map(report => JSON.stringify(report.calls))
  expect(reports[0]?.calls.length).toBeGreaterThanOrEqual(ASKS * LIMITS.length)
  expect(ahead).toBe(right)
  expect(behind).toBe(right)
})
