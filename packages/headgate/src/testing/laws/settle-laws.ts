import type { Limit } from '../../algorithms/algorithm.js'
import { slidingWindowCounter } from '../../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { tokenBucket } from '../../algorithms/token-bucket.js'
import { askStore } from '../../store/ask-store.js'
import { ask, check, decide, type Law, type LawBench, same } from './law.js'

const WINDOW_MS = 10_000
const limits: readonly Limit[] = [
  slidingWindowLog({ limit: 10, window: '10s' }),
  slidingWindowCounter({ limit: 10, window: '10s' }),
  slidingWindowCounter({ limit: 10, window: '10s', buckets: 5 }),
  tokenBucket({ capacity: 10, refillPerSecond: 1 }),
]

/** Units already used are charged whether they fit or not, and later requests wait for them. */
export const settleLaws: readonly Law[] = [
  {
    name: 'a store charges what was used beyond the limit, and lets later requests wait for it',
    async run(bench) {
      for (const limit of limits) {
        await decide(bench, limit, 8)
        same(await chargeMore(bench, limit, 7), [0], `${limit.id}, given back`)
        same(await left(bench, limit), 0, `${limit.id}, left`)
        const denied = (await decide(bench, limit)).verdicts[0]?.[0]
        same(denied?.allowed, false, `${limit.id}, admitted although more is used than there is`)
        bench.clock.advanceUs((denied?.retryAfterUs ?? 0) - 1)
        same((await decide(bench, limit)).charged, -1, `${limit.id}, a microsecond early`)
        bench.clock.advanceUs(1)
        same((await decide(bench, limit)).charged, 0, `${limit.id}, after the wait`)
      }
    },
  },
  {
    name: 'a store makes a bucket wait for what it owes before it fills again',
    async run(bench) {
      const limit = tokenBucket({ capacity: 10, refillPerSecond: 1 })
      await decide(bench, limit, 10)
      await chargeMore(bench, limit, 5)
      same((await decide(bench, limit)).verdicts[0]?.[0]?.retryAfterUs, 6_000_000, 'wait for one token')
    },
  },
  {
    name: 'a store shuts nobody out for longer than twice a limit takes to come back, whatever was used',
    async run(bench) {
      for (const limit of limits) {
        for (let time = 0; time < 5; time++) await chargeMore(bench, limit, 2 ** 32 - 1)
        const waitUs = (await decide(bench, limit)).verdicts[0]?.[0]?.retryAfterUs ?? 0
        same(waitUs <= 2 * WINDOW_MS * 1000, true, `${limit.id}, a wait of ${waitUs} us within two windows`)
        bench.clock.advanceMs(4 * WINDOW_MS)
        same(await left(bench, limit), 10, `${limit.id}, left at last`)
      }
    },
  },
]

async function chargeMore(bench: LawBench, limit: Limit, units: number): Promise<readonly number[]> {
  return bench.other.refund([{ check: check(bench, limit), units: -units, chargedAtUs: null }])
}

async function left(bench: LawBench, limit: Limit): Promise<number | undefined> {
  return (await askStore(bench.store, ask(check(bench, limit)), true)).verdicts[0]?.[0]?.remaining
}
