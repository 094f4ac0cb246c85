/**
 * Eight processes lease units of the same hot keys from a real Redis. Their admissions are replayed by time: never
 * more than the limit promises, and nearly all of it.
 */

import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.ts'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket.ts'
import type { Check } from '../../src/check/check.ts'
import { leaseLimits } from '../../src/policy/leases.ts'
import { isCounter, isTokenBucket } from '../support/limit-kinds.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { mostInAnyWindow } from './bounds.ts'
import { type LeaseReport, runWorkers } from './workers.ts'

const DURATION_MS = process.env.HEADGATE_LONG === '1' ? 60_000 : 10_000
const PROCESSES = 8
const WINDOW_US = 4_000_000
const UNITS = 2_000

const LIMITS: readonly Limit[] = [
  slidingWindowLog({ limit: UNITS, window: '4s' }),
  slidingWindowCounter({ limit: UNITS, window: '4s' }),
  slidingWindowCounter({ limit: UNITS, window: '4s', buckets: 100 }),
  tokenBucket({ capacity: UNITS, refillPerSecond: UNITS / 4 }),
]
const CHECKS: readonly Check[] = LIMITS.map(limit => {
  const [leased] = leaseLimits('lease', [limit], { max: 200, ttl: '100ms' }) as [Limit]
  return { subject: 'user:hot', scope: 'global', name: `lease.${limit.id}`, limit: leased, cost: 1 }
})

let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis?.stop())

interface Admitted {
  readonly atUs: number
  readonly cost: number
}

function admittedBy(
  reports: readonly LeaseReport[],
  number: number,
): { times: Admitted[]; slowestUs: number } {
  const times: Admitted[] = []
  let slowestUs = 0
  for (const { admitted } of reports) {
    for (let at = 0; at < admitted.length; at += 3) {
      if (admitted[at] !== number) continue
      times.push({ atUs: admitted[at + 1] as number, cost: 1 })
      slowestUs = Math.max(slowestUs, admitted[at + 2] as number)
    }
  }
  return { times: times.sort((one, other) => one.atUs - other.atUs), slowestUs }
}

/** Returns the most that may be admitted in any interval as long as the window. */
function most(limit: Limit, windowUs: number): number {
  if (isTokenBucket(limit)) return limit.limit + (limit.refillPerSecond * windowUs) / 1e6
  return isCounter(limit) ? 2 * limit.limit : limit.limit
}

it('eight processes admit no more than the limit, and at least 95 % of it', {
  timeout: 120_000,
}, async () => {
  const job = {
    ...({ job: 'lease', client: 'ioredis', ports: [redis.port], cluster: false } as const),
    checks: CHECKS,
    processes: PROCESSES,
    inFlight: 4,
    durationMs: DURATION_MS,
  }
  const reports = await runWorkers(Array.from({ length: PROCESSES }, () => job))
  const leased = reports.reduce((sum, report) => sum + report.leased, 0)
  const admitted = reports.reduce((sum, report) => sum + report.admitted.length / 3, 0)
  expect(leased / admitted).toBeGreaterThan(0.2)
  for (const [number, limit] of LIMITS.entries()) {
    const { times, slowestUs } = admittedBy(reports, number)
    // An answer arrives a little after the charge: a window of answers, less that little, is within one of charges.
    const windowUs = WINDOW_US - slowestUs
    expect(windowUs, limit.id).toBeGreaterThan(WINDOW_US / 2)
    expect(mostInAnyWindow(times, windowUs), limit.id).toBeLessThanOrEqual(most(limit, WINDOW_US))
    // A window that counts for a TTL longer begins again that much later, so the last one is incomplete.
    const firstUs = times[0]?.atUs ?? 0
    const windows = Math.floor((DURATION_MS * 1000) / WINDOW_US) - 1
    const used = times.filter(({ atUs }) => atUs < firstUs + windows * WINDOW_US).length
    expect(used / (windows * UNITS), limit.id).toBeGreaterThanOrEqual(0.95)
  }
})
