import { describe, expect, it } from 'vitest'
import { mutants } from './mutants.ts'
import { type Mode, type Run, simulate } from './simulate.ts'
import type { Wiring } from './wiring.ts'

/** More of them: `npm run test:simulation -- --seeds=10000`. */
const SEEDS = 200
const TIMEOUT_MS = 240_000

/** Seeds that once failed, and what they showed. */
const REGRESSIONS: readonly (readonly [number, Mode, string])[] = [
  [19, 'safety', 'a store that comes and goes gave a process its share anew each time'],
  [60, 'safety', 'a closed store went on looking for Redis'],
]

async function problemsOf(seeds: readonly number[], mode: Mode, wiring?: Wiring): Promise<string[]> {
  const problems: string[] = []
  for (const seed of seeds) {
    const run = await simulate(seed, mode, wiring ? { wiring } : {})
    problems.push(...run.problems.map(problem => `seed ${seed}, ${mode}: ${problem}`))
  }
  return problems
}

const upTo = (count: number): number[] => Array.from({ length: count }, (_, index) => index + 1)

describe('the limiter over a simulated Redis', { timeout: TIMEOUT_MS }, () => {
  it(`does nothing it must not do, for ${SEEDS} seeds`, async () => {
    expect(await problemsOf(upTo(SEEDS), 'safety')).toEqual([])
  })

  it(`is well again in time when the faults stop, for ${SEEDS} seeds`, async () => {
    expect(await problemsOf(upTo(SEEDS), 'liveness')).toEqual([])
  })

  it.each(REGRESSIONS)('holds for seed %i in %s mode: %s', async (seed, mode) => {
    expect(await problemsOf([seed], mode)).toEqual([])
  })
})

describe('the simulation', { timeout: TIMEOUT_MS }, () => {
  it('has the same history for the same seed, byte for byte, and another for another', async () => {
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

  it('has it whatever the clocks on the walls of the processes say', async () => {
    for (const seed of [3, 19]) {
      const { history } = await simulate(seed, 'safety', { recorded: true })
      const off = await simulate(seed, 'safety', { recorded: true, wallOffsetMs: -3_600_000 })
      expect(off.history).toEqual(history)
    }
  })

  it('comes across everything that can become of a request', async () => {
    const runs: Run[] = []
    for (const seed of upTo(20)) runs.push(await simulate(seed, 'safety'))
    const seen = new Set(runs.flatMap(({ tally }) => Object.keys(tally)))
    for (const source of ['redis allowed', 'redis denied', 'local allowed', 'local denied']) {
      expect(seen).toContain(source)
    }
    for (const state of ['breaker open', 'breaker half-open', 'breaker closed']) expect(seen).toContain(state)
    for (const mode of ['open allowed', 'closed denied']) expect(seen).toContain(mode)
  })

  it.each(mutants)('finds out that $fault', async ({ wiring, mode, complaint }) => {
    const complaints = (await problemsOf(upTo(12), mode, wiring)).join('\n')
    expect(complaints).toMatch(complaint)
  })
})
