import type { Limit } from '../../algorithms/algorithm.js'
import { slidingWindowCounter } from '../../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { tokenBucket } from '../../algorithms/token-bucket.js'
import { askStore } from '../../store/ask-store.js'
import { seededRandom } from '../seeded-random.js'
import { ask, check, type Law, type LawBench } from './law.js'

const LIMIT = 12
const WINDOW_US = 10_000_000
const RATE = 1.5

/** An admitted charge. */
interface Charge {
  readonly atUs: number
  readonly cost: number
}

interface Bound {
  readonly limit: Limit
  /** Returns the most that may be admitted from one charge on, over the given time. */
  most(spanUs: number): number
  /** The longest time over which the bound is checked. */
  readonly spanUs: number
}

const bounds: readonly Bound[] = [
  { limit: slidingWindowLog({ limit: LIMIT, window: '10s' }), most: () => LIMIT, spanUs: WINDOW_US },
  {
    limit: slidingWindowCounter({ limit: LIMIT, window: '10s' }),
    most: () => 2 * LIMIT,
    spanUs: WINDOW_US,
  },
  {
    limit: slidingWindowCounter({ limit: LIMIT, window: '10s', buckets: 4 }),
    most: () => LIMIT,
    spanUs: WINDOW_US,
  },
  {
    limit: tokenBucket({ capacity: LIMIT, refillPerSecond: RATE }),
    most: spanUs => LIMIT + (RATE * spanUs) / 1e6,
    spanUs: 6 * WINDOW_US,
  },
]

/** The promise of each algorithm, over histories of bursts and pauses with mixed costs. */
export const boundLaws: readonly Law[] = bounds.map(bound => ({
  name: `a store never admits more than promised in any interval: ${bound.limit.id}`,
  run: bench => holdBound(bench, bound),
}))

async function holdBound(bench: LawBench, bound: Bound): Promise<void> {
  const random = seededRandom(7)
  const charges: Charge[] = []
  for (let step = 0; step < 300; step++) {
    bench.clock.advanceUs(random() < 0.7 ? Math.floor(random() * 400_000) : Math.floor(random() * 6_000_000))
    const cost = 1 + Math.floor(random() * 4)
    const answer = await askStore(bench.store, ask(check(bench, bound.limit, cost)))
    if (answer.charged === 0) charges.push({ atUs: bench.clock.nowUs(), cost })
  }
  if (charges.length < 30)
    throw new Error(`expected a history worth looking at; got ${charges.length} charges`)
  for (const [index, first] of charges.entries()) {
    let total = 0
    for (const charge of charges.slice(index)) {
      const spanUs = charge.atUs - first.atUs
      if (spanUs >= bound.spanUs) break
      total += charge.cost
      if (total > bound.most(spanUs)) {
        throw new Error(`expected at most ${bound.most(spanUs)} within ${spanUs} us; got ${total}`)
      }
    }
  }
}
