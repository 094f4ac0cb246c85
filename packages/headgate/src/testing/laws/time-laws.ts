import type { Limit } from '../../algorithms/algorithm.js'
import { quota } from '../../algorithms/quota.js'
import { slidingWindowCounter } from '../../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { tokenBucket } from '../../algorithms/token-bucket.js'
import { askStore } from '../../store/ask-store.js'
import { admitted, ask, check, decide, type Law, type LawBench, same } from './law.js'

const WINDOW_MS = 10_000
const limits: readonly Limit[] = [
  slidingWindowLog({ limit: 7, window: '10s' }),
  slidingWindowCounter({ limit: 7, window: '10s' }),
  slidingWindowCounter({ limit: 7, window: '10s', buckets: 4 }),
  tokenBucket({ capacity: 7, refillPerSecond: 0.7 }),
]

/** Limits and how far apart, in milliseconds, the requests of a caller are who just keeps to them: window ÷ limit and one more. */
const steady: readonly (readonly [Limit, number])[] = [1, 2, 5, 10, 20, 100].flatMap(limit => [
  [slidingWindowLog({ limit, window: '1m' }), 60_000 / limit + 1] as const,
  [slidingWindowCounter({ limit, window: '1m' }), 60_000 / limit + 1] as const,
  [tokenBucket({ capacity: limit, refillPerSecond: limit / 60 }), 60_000 / limit + 1] as const,
  // The oldest of its sub-windows counts whole, so its window is longer by one of them.
  [slidingWindowCounter({ limit, window: '1m', buckets: 4 }), 75_000 / limit + 1] as const,
])

/** How limits behave over time. */
export const timeLaws: readonly Law[] = [
  ...[...limits, quota({ limit: 7, per: 'day' })].map(limit => ({
    name: `a store admits after exactly retryAfterMs and not a millisecond sooner: ${limit.id}`,
    run: (bench: LawBench) => obeyRetryAfter(bench, limit),
  })),
  ...limits.map(limit => ({
    name: `a store admits nothing more when the clock steps back, and locks no key: ${limit.id}`,
    run: (bench: LawBench) => stepBack(bench, limit),
  })),
  {
    name: 'a store admits everything of a caller who keeps to the limit',
    async run(bench) {
      for (const [limit, apartMs] of steady) {
        bench.clock.advanceUs(1_234_567)
        for (let request = 1; request <= 3 * limit.limit + 10; request++) {
          same((await decide(bench, limit)).charged, 0, `${limit.id} of ${limit.limit}, request ${request}`)
          bench.clock.advanceMs(apartMs)
        }
        await bench.store.reset([check(bench, limit)])
        bench.clock.advanceMs(200_000)
      }
    },
  },
  {
    name: 'a store counts two requests of one microsecond twice',
    async run(bench) {
      for (const limit of limits) same(await admitted(bench, limit, 20), 7, limit.id)
    },
  },
  {
    name: 'a store is exact for limits of 2^32 - 1 and windows of 366 days',
    async run(bench) {
      const most = 2 ** 32 - 1
      for (const limit of [
        slidingWindowLog({ limit: most, window: '366d' }),
        slidingWindowCounter({ limit: most, window: '366d' }),
        slidingWindowCounter({ limit: most, window: '366d', buckets: 7 }),
        tokenBucket({ capacity: most, refillPerSecond: 1 }),
        quota({ limit: most, per: 'year' }),
      ]) {
        same(
          (await decide(bench, limit, most - 1)).verdicts[0]?.[0]?.remaining,
          1,
          `${limit.id}, all but one`,
        )
        same((await decide(bench, limit, 1)).verdicts[0]?.[0]?.remaining, 0, `${limit.id}, the last`)
        same((await decide(bench, limit, 1)).charged, -1, `${limit.id}, one too many`)
      }
    },
  },
  {
    name: 'a store is exact for windows of one millisecond',
    async run(bench) {
      const limit = slidingWindowLog({ limit: 2, window: '1ms' })
      same(await admitted(bench, limit, 3), 2, 'in the first millisecond')
      bench.clock.advanceUs(999)
      same(await admitted(bench, limit, 1), 0, 'a microsecond early')
      bench.clock.advanceUs(1)
      same(await admitted(bench, limit, 3), 2, 'in the next')
    },
  },
]

async function obeyRetryAfter(bench: LawBench, limit: Limit): Promise<void> {
  bench.clock.advanceUs(1_234_567)
  for (const cost of [1, 3, 7, 2, 5]) {
    const answer = await decide(bench, limit, cost)
    if (answer.charged === 0) continue
    const retryAfterMs = Math.ceil((answer.verdicts[0]?.[0]?.retryAfterUs ?? 0) / 1000)
    bench.clock.advanceMs(retryAfterMs - 1)
    same((await decide(bench, limit, cost)).charged, -1, `cost ${cost}, ${retryAfterMs - 1} ms later`)
    bench.clock.advanceMs(1)
    same((await decide(bench, limit, cost)).charged, 0, `cost ${cost}, ${retryAfterMs} ms later`)
  }
}

async function stepBack(bench: LawBench, limit: Limit): Promise<void> {
  same(await admitted(bench, limit, 10), 7, 'before the step')
  bench.clock.advanceMs(-1_000)
  same(await admitted(bench, limit, 10), 0, 'a second back')
  bench.clock.advanceMs(-3_600_000)
  // Two windows, or the time a bucket takes to fill, are the longest denial a step back may cause.
  const wait = await askStore(bench.store, ask(check(bench, limit)), true)
  const waitMs = (wait.verdicts[0]?.[0]?.retryAfterUs ?? 0) / 1000
  same(waitMs <= 2 * WINDOW_MS, true, `an hour back, a wait of ${waitMs} ms within two windows`)
}
