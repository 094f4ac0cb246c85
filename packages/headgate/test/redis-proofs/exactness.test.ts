/**
 * Eight processes hammer the same keys. Every verdict is recorded with the store's own time and replayed: the
 * admissions against the bound each algorithm promises, and everything through the engine, which must agree.
 */

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Limit } from '../../src/algorithms/algorithm.ts'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket.ts'
import { isLog, isWindow } from '../support/limit-kinds.ts'
import { startCluster } from '../support/redis-cluster.ts'
import { startRedis } from '../support/redis-process.ts'
import { type Admission, checkBounds, mostInAnyWindow } from './bounds.ts'
import { readKeyspace } from './keyspace.ts'
import {
  admissionsOf,
  CHECKS,
  CLOCKS,
  COSTS,
  differencesFromEngine,
  histories,
  type LoggedVerdict,
} from './saturation.ts'
import { runWorkers, type SaturateReport } from './workers.ts'

const LONG = process.env.HEADGATE_LONG === '1'
const DURATION_MS = LONG ? 60_000 : 6_000
const PROCESSES = 8
const IN_FLIGHT = 16
/** Returns how much of the windows' capacity after the first admission was used. */
function utilisation(limit: Limit & { windowUs: number }, history: readonly Admission[]): number {
  const firstUs = history[0]?.atUs ?? 0
  const windows = Math.floor((DURATION_MS * 1000) / limit.windowUs)
  const used = history
    .filter(({ atUs }) => atUs < firstUs + windows * limit.windowUs)
    .reduce((sum, { cost }) => sum + cost, 0)
  return used / (windows * limit.limit)
}

const topologies = [
  {
    name: 'a single Redis',
    async start() {
      const redis = await startRedis()
      return { ports: [redis.port], primaries: [redis.port], stop: () => redis.stop() }
    },
    cluster: false,
  },
  {
    name: 'a cluster of 3 primaries and 3 replicas',
    async start() {
      const cluster = await startCluster({ primaries: 3, replicasPerPrimary: 1 })
      const ports = cluster.nodes.map(node => node.port)
      return { ports, primaries: cluster.primaries.map(node => node.port), stop: () => cluster.stop() }
    },
    cluster: true,
  },
]

describe.each(topologies)('eight processes on $name', ({ name, start, cluster }) => {
  let servers: Awaited<ReturnType<typeof start>>
  let reports: SaturateReport[]
  let history: LoggedVerdict[][]
  let admissions: Admission[][]

  beforeAll(async () => {
    servers = await start()
    reports = await runWorkers(
      Array.from({ length: PROCESSES }, (_, index) => ({
        job: 'saturate',
        client: index % 2 === 0 ? 'ioredis' : 'node-redis',
        ports: servers.ports,
        cluster,
        checks: CHECKS,
        clocks: CLOCKS,
        costs: COSTS,
        inFlight: IN_FLIGHT,
        durationMs: DURATION_MS,
        seed: index + 1,
      })),
    )
    history = histories(reports)
    admissions = history.map(admissionsOf)
  }, DURATION_MS + 60_000)

  afterAll(() => servers?.stop())

  it('eight processes leave no key without a TTL', async () => {
    const keyspaces = await Promise.all(servers.primaries.map(readKeyspace))
    for (const { keys, expires } of keyspaces) expect(keys).toBe(expires)
    expect(keyspaces.reduce((sum, { keys }) => sum + keys, 0)).toBeGreaterThan(0)
  })

  it('eight processes admit nothing above what each algorithm promises', () => {
    const decisions = reports.reduce((sum, report) => sum + report.decisions, 0)
    const admitted = admissions.reduce((sum, { length }) => sum + length, 0)
    console.info(
      `${name}: ${Math.round(decisions / (DURATION_MS / 1000))} decisions/s from ${PROCESSES} processes, ${admitted} admissions`,
    )
    for (const check of CHECKS.flat()) {
      const admitted = admissions[check.number] ?? []
      expect(admitted.length).toBeGreaterThan(0)
      for (const { promise, worst, bound } of checkBounds(check.limit, admitted)) {
        expect(worst, `${check.subject} ${check.name}: ${promise}`).toBeLessThanOrEqual(bound)
      }
    }
  })

  it('eight processes get the verdicts the engine gives for the same history, admissions and denials', () => {
    for (const check of CHECKS.flat()) {
      expect(differencesFromEngine(check.limit, history[check.number] ?? []), check.name).toEqual([])
    }
  })

  it('eight processes use the limits up, so that there was something to exceed', () => {
    const logs = CHECKS.flat().filter(({ limit }) => isLog(limit))
    const used = logs.map(check => utilisation(check.limit as never, admissions[check.number] ?? []))
    const mean = used.reduce((sum, share) => sum + share, 0) / used.length
    console.info(`${name}: ${(mean * 100).toFixed(1)} % of the logs used`)
    expect(mean).toBeGreaterThan(0.9)
    for (const { limit, number } of CHECKS.flat()) {
      if (!isWindow(limit)) continue
      expect(mostInAnyWindow(admissions[number] ?? [], limit.windowUs)).toBeGreaterThanOrEqual(limit.limit)
    }
  })
})

describe('the replay', () => {
  const log = slidingWindowLog({ limit: 20, window: '1s' })
  const counter = slidingWindowCounter({ limit: 20, window: '1s' })
  const buckets = slidingWindowCounter({ limit: 20, window: '1s', buckets: 10 })
  const bucket = tokenBucket({ capacity: 20, refillPerSecond: 20 })
  const burst = (atUs: number, units: number): Admission[] =>
    Array.from({ length: units }, () => ({ atUs, cost: 1 }))
  const isExceeded = (limit: Limit, history: Admission[]): boolean =>
    checkBounds(limit, history).some(({ worst, bound }) => worst > bound)

  it('the replay sees one unit too many in a window, and not the one that comes a window later', () => {
    for (const limit of [log, buckets]) {
      expect(isExceeded(limit, [...burst(0, 20), ...burst(999_999, 1)])).toBe(true)
      expect(isExceeded(limit, [...burst(0, 20), ...burst(1_000_000, 20)])).toBe(false)
    }
  })

  it('the replay sees one unit too many in an aligned window, and no fault in 2 × limit in any', () => {
    expect(isExceeded(counter, [...burst(0, 20), ...burst(999_999, 1)])).toBe(true)
    expect(isExceeded(counter, [...burst(999_999, 20), ...burst(1_000_000, 20)])).toBe(false)
    expect(isExceeded(counter, [...burst(999_999, 20), ...burst(1_000_000, 21)])).toBe(true)
  })

  it('the replay sees one token too many for the time that has passed', () => {
    expect(isExceeded(bucket, [...burst(0, 20), ...burst(50_000, 1)])).toBe(false)
    expect(isExceeded(bucket, [...burst(0, 20), ...burst(49_999, 1)])).toBe(true)
    expect(isExceeded(bucket, [...burst(0, 20), ...burst(1_000_000, 20), ...burst(1_000_001, 1)])).toBe(true)
  })
})
