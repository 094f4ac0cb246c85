/** A rolling deploy: processes of the previous version and of this one hammer the same keys. */
import { afterAll, beforeAll, expect, it } from 'vitest'
import { checkBounds } from '../redis-proofs/bounds.ts'
import { readKeyspace } from '../redis-proofs/keyspace.ts'
import {
  admissionsOf,
  CHECKS,
  CLOCKS,
  COSTS,
  differencesFromEngine,
  histories,
  type LoggedVerdict,
} from '../redis-proofs/saturation.ts'
import { runWorkers } from '../redis-proofs/workers.ts'
import { readInfo } from '../support/redis-info.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { unpackPrevious } from './previous.ts'

const DURATION_MS = process.env.HEADGATE_LONG === '1' ? 60_000 : 5_000
const PROCESSES = 4

let server: RedisProcess
let previous: Awaited<ReturnType<typeof unpackPrevious>>
let history: LoggedVerdict[][]
let decisions: number[]

beforeAll(async () => {
  server = await startRedis()
  previous = await unpackPrevious()
  // A process that cannot read a key rejects, which fails the run.
  const reports = await runWorkers(
    Array.from({ length: PROCESSES }, (_, index) => ({
      job: 'saturate',
      ...(index % 2 === 0 && { library: previous.path }),
      client: index < PROCESSES / 2 ? 'ioredis' : 'node-redis',
      ports: [server.port],
      cluster: false,
      checks: CHECKS,
      clocks: CLOCKS,
      costs: COSTS,
      inFlight: 16,
      durationMs: DURATION_MS,
      seed: index + 1,
    })),
  )
  history = histories(reports)
  decisions = reports.map(report => report.decisions)
}, DURATION_MS + 60_000)

afterAll(async () => {
  await previous?.remove()
  await server?.stop()
})

it('both versions together admit nothing above what each algorithm promises', () => {
  for (const made of decisions) expect(made).toBeGreaterThan(0)
  for (const { number, name, subject, limit } of CHECKS.flat()) {
    const admitted = admissionsOf(history[number] ?? [])
    expect(admitted.length).toBeGreaterThan(0)
    for (const { promise, worst, bound } of checkBounds(limit, admitted)) {
      expect(worst, `${subject} ${name}: ${promise}`).toBeLessThanOrEqual(bound)
    }
  }
})

it('both versions give the verdicts the engine gives for what they did together', () => {
  for (const { number, name, limit } of CHECKS.flat()) {
    expect(differencesFromEngine(limit, history[number] ?? []), name).toEqual([])
  }
})

it('no key was of a type the other version does not know, and none is without a TTL', async () => {
  const errors = await readInfo(server.port, 'INFO', 'errorstats')
  expect(errors).not.toHaveProperty('errorstat_WRONGTYPE')
  const { keys, expires } = await readKeyspace(server.port)
  expect(keys).toBe(expires)
})
