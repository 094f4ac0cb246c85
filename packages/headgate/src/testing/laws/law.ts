import type { Limit } from '../../algorithms/algorithm.js'
import type { Check } from '../../check/check.js'
import { type Answer, askStore, type Question } from '../../store/ask-store.js'
import type { Store } from '../../store/store.js'
import type { ManualClock } from '../manual-clock.js'

/** One requirement of every store. `run` rejects with a message that says what was expected and what came. */
export interface Law {
  readonly name: string
  run(bench: LawBench): Promise<void>
}

/** The tools of a law: a store under test, its clock, and names that no other law uses. */
export interface LawBench {
  readonly store: Store
  readonly clock: ManualClock
  /** Another store on the same state, if the stores share it; the same one otherwise. */
  readonly other: Store
  /** A subject that no other law has used. */
  readonly subject: string
}

/** Creates a check of the bench's subject. */
export function check(bench: LawBench, limit: Limit, cost = 1, overrides: Partial<Check> = {}): Check {
  return { subject: bench.subject, scope: 'global', name: `law.${limit.id}`, limit, cost, ...overrides }
}

/** Creates a question with one alternative. */
export function ask(...checks: Check[]): Question {
  return { alternatives: [checks], shadow: [] }
}

/** Asks the store one check, and returns its answer. */
export async function decide(bench: LawBench, limit: Limit, cost = 1): Promise<Answer> {
  return askStore(bench.store, ask(check(bench, limit, cost)))
}

/** Returns how many of `times` requests of the same cost are admitted. */
export async function admitted(bench: LawBench, limit: Limit, times: number, cost = 1): Promise<number> {
  let count = 0
  for (let time = 0; time < times; time++) if ((await decide(bench, limit, cost)).charged === 0) count++
  return count
}

/** Throws unless both values are equal. */
export function same(actual: unknown, expected: unknown, what: string): void {
  const left = JSON.stringify(actual, keepInfinity)
  const right = JSON.stringify(expected, keepInfinity)
  if (left !== right) throw new Error(`${what}: expected ${right}; got ${left}`)
}

function keepInfinity(_key: string, value: unknown): unknown {
  return value === Number.POSITIVE_INFINITY ? 'never' : value
}
