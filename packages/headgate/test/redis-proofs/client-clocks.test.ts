/** Time is the store's. A process whose clock is wrong by an hour neither gets more nor gives others less. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Limit } from '../../src/engine/limit.ts'
import type { Check } from '../../src/engine/question.ts'
import { slidingWindowCounter, slidingWindowLog, tokenBucket } from '../../src/policy/limits.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { runWorkers, type SpendJob } from './workers.ts'

const HOUR_MS = 3_600_000
const SHIFTS_MS = [0, HOUR_MS, -HOUR_MS]
const UNITS = 10
/** Each process by itself would use the limits up. */
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

function checksFor(subject: string): Check[] {
  return LIMITS.map((limit, index) => ({
    subject,
    scope: 'global',
    name: `proof${index}.${limit.id}`,
    limit,
    cost: 1,
  }))
}

let redis: RedisProcess

beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

function jobs(overrides: Partial<SpendJob>): SpendJob[] {
  return SHIFTS_MS.map(clockShiftMs => ({
    job: 'spend',
    client: 'ioredis',
    ports: [redis.port],
    cluster: false,
    checks: checksFor('user:shared'),
    times: ASKS,
    clockShiftMs,
    ...overrides,
  }))
}

test('processes an hour ahead and an hour behind share every limit exactly with one that is right', async () => {
  const reports = await runWorkers(
    jobs({}).map((job, index) => ({ ...job, client: index === 1 ? 'node-redis' : 'ioredis' })),
  )
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

test('what is sent does not depend on the clock of the sender, to the byte', async () => {
  const [right, ahead, behind] = await runWorkers(
    jobs({ recordCalls: true, checks: checksFor('user:recorded') }),
  )
  expect(right?.calls.length).toBeGreaterThanOrEqual(ASKS * LIMITS.length)
  expect(JSON.stringify(ahead?.calls)).toBe(JSON.stringify(right?.calls))
  expect(JSON.stringify(behind?.calls)).toBe(JSON.stringify(right?.calls))
})
