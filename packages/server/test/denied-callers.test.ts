/** The counts of who was denied most, against an oracle that counts every denial. */
import { createLimiter, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import type { ProcessReport, StatisticsStore } from 'headgate/internal'
import { type Report, referenceOf } from 'headgate/internal'
import { createStatistics } from 'headgate/metrics'
import { afterAll, describe, expect, it } from 'vitest'
import { createDice } from '../../headgate/test/simulation/dice.js'
import { statsOf } from './support/test-stats.js'

type Random = () => number

/** Who is denied in a second of a process, in order. */
type Denials = (random: Random) => readonly number[]

const ruled = createLimiter({ config: defineConfig({}) })
afterAll(() => ruled.close())

/** A process that denies everybody, and leaves a report when its second is over. */
function createProcess(id: string, random: Random) {
  let tick = (): void => {}
  const keep = (_ms: number, work: () => void) => {
    tick = work
    return () => {}
  }
  const statistics = createStatistics({ timers: { after: keep, inBackground: keep }, random })
  const limiter = createLimiter({
    policies: { ban: slidingWindowLog({ limit: 0, window: '1m' }) },
    statistics,
  })
  let left: ProcessReport | null = null
  let sequence = 0
  statistics.onSecond(({ denials: _, ...report }: Report) => {
    const about = {
      id,
      service: '',
      version: '',
      configVersion: null,
      startedAtMs: 0,
      note: null,
      shadow: {},
      candidates: {},
    }
    left = { ...report, ...about, sequence: ++sequence }
  })
  return {
    deny: (subject: string) => void limiter.checkNow(subject as 'user:1', { policy: 'ban' }),
    report(): ProcessReport {
      tick()
      return left as never
    },
  }
}

/** Plays seconds of a fleet; returns the counts shown, the error claimed, and the true counts, by reference. */
async function play({
  seed,
  processes: count,
  seconds,
  denials,
}: {
  readonly seed: number
  readonly processes: number
  readonly seconds: number
  readonly denials: Denials
}) {
  const { roll } = createDice(seed)
  const processes = Array.from({ length: count }, (_, index) => createProcess(`p${index}`, roll))
  let reports: ProcessReport[] = []
  const fleet: StatisticsStore = {
    id: '',
    setNote() {},
    serverInfo: async () => null,
    keepPoint: async () => {},
    readRing: async () => [],
    read: async () => ({ nowMs: 0, processes: reports, denials: [], cursor: '' }),
  }
  let passed = (_report: Report): void => {}
  const onSecond = (listener: (report: Report) => void) => {
    passed = listener
    return () => {}
  }
  const own = createStatistics()
  const statistics = { read: () => own.read(), arrivals: () => own.arrivals(), onSecond }
  const stats = statsOf(ruled, statistics, { fleet })
  const truth = new Map<number, number>()
  for (let second = 0; second < seconds; second++) {
    for (const process of processes) {
      for (const caller of denials(roll)) {
        process.deny(`user:${caller}`)
        truth.set(caller, (truth.get(caller) ?? 0) + 1)
      }
    }
    reports = processes.map(process => process.report())
    passed({} as Report)
    await new Promise(setImmediate)
  }
  const { deniedCallers, deniedCallersErrorAtMost } = stats.snapshot()
  stats.close()
  const trueCounts = new Map([...truth].map(([caller, count]) => [referenceOf(`user:${caller}`), count]))
  return { deniedCallers, errorAtMost: deniedCallersErrorAtMost, truth: trueCounts }
}

const pick = (random: Random, callers: number) => Math.floor(random() * callers)
/** A few callers are denied often, many seldom. */
const skewed =
  (count: number, callers: number): Denials =>
  random =>
    Array.from({ length: count }, () => Math.floor(callers * random() ** 3))
/** Everybody is denied alike. */
const alike =
  (count: number, callers: number): Denials =>
  random =>
    Array.from({ length: count }, () => pick(random, callers))
/** One caller after the other is denied many times in a row. */
const inBlocks =
  (count: number, block: number, callers: number): Denials =>
  random =>
    Array.from({ length: count / block }, () => pick(random, callers)).flatMap(caller =>
      new Array(block).fill(caller),
    )

describe('who was denied most', () => {
  it.each<[string, number, number, Denials]>([
    ['few callers', 1, 5, skewed(200, 15)],
    ['more callers than a process lists', 1, 10, skewed(400, 60)],
    ['more callers than a process follows', 1, 10, skewed(450, 300)],
    ['more callers than a process follows, all alike', 1, 10, alike(450, 300)],
    ['three processes', 3, 5, skewed(400, 200)],
    ['so many that only some are looked at', 1, 4, skewed(2_000, 15)],
    ['a flood of many', 1, 2, skewed(8_000, 1_000)],
    ['a flood in blocks', 1, 2, inBlocks(8_000, 100, 200)],
    ['a flood in three processes', 3, 2, skewed(3_000, 300)],
  ])('the counts are as near the truth as is claimed: %s', async (_what, processes, seconds, denials) => {
    for (let seed = 1; seed <= 4; seed++) {
      const { deniedCallers, errorAtMost, truth } = await play({ seed, processes, seconds, denials })
      expect(deniedCallers).toHaveLength(Math.min(20, truth.size))
      const errors = deniedCallers.map(({ reference, denied }) =>
        Math.abs(denied - (truth.get(reference) ?? 0)),
      )
      expect(Math.max(...errors), `seed ${seed}`).toBeLessThanOrEqual(errorAtMost)
    }
  })

  it('the claim is 0 where every denial is known, and small beside the counts where most are', async () => {
    const known = await play({ seed: 1, processes: 3, seconds: 5, denials: skewed(400, 15) })
    expect(known.errorAtMost).toBe(0)
    const most = await play({ seed: 1, processes: 1, seconds: 10, denials: skewed(400, 60) })
    expect(most.errorAtMost).toBeLessThan((most.deniedCallers[0]?.denied ?? 0) / 10)
  })
})
