import { describe, expect, it } from 'vitest'
import { mutants } from './mutants.ts'
import { ONE_CALL_EACH } from './policies.ts'
import { type Mode, type SimulationOptions, simulate } from './simulate.ts'

/** For more of them: `npm run proof -- simulation --seeds=10000`. */
const SEEDS = 200
/** The number of outages, which take six times as long as the others. */
const OUTAGES = 8
const TIMEOUT_MS = 240_000

/** The least the seeds must come across: a simulation in which nothing happens proves nothing. */
const COMES_ACROSS: Readonly<Record<string, number>> = {
  'redis allowed': 1_000,
  'redis denied': 1_000,
  'local allowed': 1_000,
  'local denied': 1_000,
  'open allowed': 100,
  'closed denied': 100,
  'breaker open': 100,
  'breaker half-open': 100,
  'breaker closed': 100,
  'shared calls': 500,
  'leased allowed': 5_000,
  'leases given back': 500,
  'grants in part': 10,
  'crashes with a lease': 5,
  'closed with a lease': 5,
  resets: 100,
  'permits: charge': 200,
  'permits: renewal': 100,
  'permits: refund': 100,
  'estimates: charge': 500,
  'estimates: refund': 100,
}

const ONE_EACH: SimulationOptions = { shape: ONE_CALL_EACH }

/** Seeds that once failed, and what they showed. */
const REGRESSIONS: readonly (readonly [number, Mode, SimulationOptions, string])[] = [
  [19, 'safety', ONE_EACH, 'a store that comes and goes gave a process its share anew each time'],
  [60, 'safety', ONE_EACH, 'a closed store went on looking for Redis'],
  [74, 'safety', {}, 'a late reply changed a decision that had been given without it'],
  [1011, 'safety', {}, 'a process that was alone, and is not any more, had part of its share twice'],
]

/** Returns the denials of all seeds, and what they came across. */
async function simulateAll(mode: Mode, seeds = SEEDS, options: SimulationOptions = {}) {
  const problems: string[] = []
  const seen: Record<string, number> = {}
  for (let seed = 1; seed <= seeds; seed++) {
    const run = await simulate(seed, mode, options)
    problems.push(...run.problems.map(problem => `seed ${seed}, ${mode}: ${problem}`))
    for (const [name, count] of Object.entries(run.tally)) seen[name] = (seen[name] ?? 0) + count
  }
  return { problems, seen }
}

describe('the limiter over a simulated Redis', { timeout: TIMEOUT_MS }, () => {
  it(`the limiter does nothing it must not do, whatever happens to a request or a lease, for ${SEEDS} seeds`, async () => {
    const { problems, seen } = await simulateAll('safety')
    expect(problems).toEqual([])
    for (const [name, least] of Object.entries(COMES_ACROSS)) {
      expect(seen[name] ?? 0, name).toBeGreaterThanOrEqual(least)
    }
  })

  it(`the limiter is well again in time when the faults stop, for ${SEEDS} seeds`, async () => {
    const { problems, seen } = await simulateAll('liveness')
    expect(problems).toEqual([])
    expect(seen['closed with a lease'] ?? 0).toBeGreaterThanOrEqual(5)
  })

  it(`the limiter admits no more than the limit when a Redis that came and went is gone, for ${OUTAGES} seeds`, async () => {
    const { problems, seen } = await simulateAll('outage', OUTAGES, { shape: { batch: true, leased: [] } })
    expect(problems).toEqual([])
    expect(seen['local allowed'] ?? 0).toBeGreaterThanOrEqual(1_000)
    expect(seen['breaker open'] ?? 0).toBeGreaterThanOrEqual(100)
  })

  it.each(REGRESSIONS)('the simulation holds for seed %i in %s mode, %o: %s', async (seed, mode, options) => {
    expect((await simulate(seed, mode, options)).problems).toEqual([])
  })
})

describe('the simulation', { timeout: TIMEOUT_MS }, () => {
  it('the simulation has the same history for the same seed, byte for byte, and another for another', async () => {
    for (const mode of ['safety', 'liveness'] as const) {
      const histories: string[] = []
      for (const seed of [3, 19, 3, 19]) {
        histories.push((await simulate(seed, mode, { recorded: true })).history)
      }
      expect(histories[0]?.length).toBeGreaterThan(10_000)
      expect(histories.slice(2)).toEqual(histories.slice(0, 2))
      expect(histories[0]).not.toEqual(histories[1])
    }
  })

  it('the simulation has the same history whatever the clocks on the walls of the processes say', async () => {
    for (const seed of [3, 19]) {
      const { history } = await simulate(seed, 'safety', { recorded: true })
      const off = await simulate(seed, 'safety', { recorded: true, wallOffsetMs: -3_600_000 })
      expect(off.history).toEqual(history)
    }
  })

  it.each(mutants)(
    'the simulation finds out that $fault',
    async ({ wiring, mode, shape, complaint, fromSeed = 1 }) => {
      const complaints: string[] = []
      for (
        let seed = fromSeed;
        seed < fromSeed + 12 && !complaints.some(one => complaint.test(one));
        seed++
      ) {
        complaints.push(...(await simulate(seed, mode, { wiring, shape })).problems)
      }
      expect(complaints.join('\n')).toMatch(complaint)
    },
  )
})
