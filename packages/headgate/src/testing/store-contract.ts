import type { MaybePromise, Store } from '../store/store.js'
import { boundLaws } from './laws/bound-laws.js'
import { caseLaws } from './laws/case-laws.js'
import type { Law } from './laws/law.js'
import { permitLaws } from './laws/permit-laws.js'
import { questionLaws } from './laws/question-laws.js'
import { settleLaws } from './laws/settle-laws.js'
import { timeLaws } from './laws/time-laws.js'
import { useLaws } from './laws/use-laws.js'
import { type ManualClock, manualClock } from './manual-clock.js'

/** A store to be tested against the contract. */
export interface StoreUnderTest {
  /** Opens a new store that takes its time from `clock`. */
  open(clock: ManualClock): MaybePromise<Store>
  /** Whether two stores opened with the same clock see each other's charges. */
  readonly shared: boolean
}

/** One test of the contract, to be run by any test runner. */
export interface ContractTest {
  readonly name: string
  run(): Promise<void>
}

const laws: readonly Law[] = [
  ...caseLaws,
  ...questionLaws,
  ...timeLaws,
  ...useLaws,
  ...boundLaws,
  ...permitLaws,
  ...settleLaws,
]

/**
 * Returns the contract of stores as tests, which reject with what was expected and what came.
 *
 * @example
 * for (const { name, run } of storeContract({ open: clock => myStore({ clock }), shared: true })) it(name, run)
 */
export function storeContract(underTest: StoreUnderTest): readonly ContractTest[] {
  const run = Math.random().toString(36).slice(2, 10)
  return laws.map((law, index) => ({
    name: law.name,
    run: () => runLaw(law, underTest, `law:${run}-${index}`),
  }))
}

async function runLaw(law: Law, underTest: StoreUnderTest, subject: string): Promise<void> {
  const clock = manualClock()
  const store = await underTest.open(clock)
  const other = underTest.shared ? await underTest.open(clock) : store
  try {
    await law.run({ store, other, clock, subject })
  } finally {
    await store.close()
    if (other !== store) await other.close()
  }
}
