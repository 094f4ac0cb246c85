import type { Limit } from '../../algorithms/algorithm.js'
import { concurrency } from '../../algorithms/concurrency.js'
import { quota } from '../../algorithms/quota.js'
import { slidingWindowCounter } from '../../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { tokenBucket } from '../../algorithms/token-bucket.js'
import type { Refund } from '../../check/check.js'
import { askStore } from '../../store/ask-store.js'
import { admitted, ask, check, decide, type Law, type LawBench, same } from './law.js'

const makers: readonly ((limit: number) => Limit)[] = [
  limit => slidingWindowLog({ limit, window: '10s' }),
  limit => slidingWindowCounter({ limit, window: '10s' }),
  limit => slidingWindowCounter({ limit, window: '10s', buckets: 5 }),
  limit => tokenBucket({ capacity: limit, refillPerSecond: 0.001 }),
  limit => concurrency({ limit, holdFor: '10s' }),
  limit => quota({ limit, per: 'month', timeZone: 'Europe/Berlin' }),
]

/** Peek, reset, refund, and limits that change. */
export const useLaws: readonly Law[] = [
  {
    name: 'a store peeks without changing anything',
    async run(bench) {
      for (const maker of makers) {
        const question = ask(check(bench, maker(5), 2))
        await askStore(bench.store, question)
        const first = await askStore(bench.store, question, true)
        same(await askStore(bench.store, question, true), first, 'a second peek')
        same([first.charged, first.verdicts[0]?.[0]?.remaining], [0, 3], 'what peek says')
        same((await askStore(bench.store, question)).verdicts[0]?.[0]?.remaining, 1, 'what check then does')
      }
    },
  },
  {
    name: 'a store forgets what was used on reset, and only of that subject',
    async run(bench) {
      for (const maker of makers) {
        const limit = maker(2)
        const neighbour = check(bench, limit, 1, { scope: 'elsewhere' })
        await admitted(bench, limit, 2)
        await askStore(bench.store, ask(neighbour))
        await bench.store.reset([check(bench, limit)])
        same(await admitted(bench, limit, 5), 2, `${limit.id} after reset`)
        same(
          (await askStore(bench.store, ask(neighbour), true)).verdicts[0]?.[0]?.remaining,
          1,
          'another scope',
        )
      }
    },
  },
  {
    name: 'a store keeps subjects, scopes and limits apart',
    async run(bench) {
      const limit = slidingWindowLog({ limit: 1, window: '1m' })
      const checks = [
        check(bench, limit),
        check(bench, limit, 1, { scope: 'other' }),
        check(bench, limit, 1, { name: 'law.other-log-1m' }),
        check(bench, limit, 1, { subject: `${bench.subject}x` }),
      ]
      for (const one of checks) same((await askStore(bench.store, ask(one))).charged, 0, 'first of each')
      for (const one of checks) same((await askStore(bench.store, ask(one))).charged, -1, 'second of each')
    },
  },
  {
    name: 'a store refunds a charge, whole or in part, and no more than it took',
    async run(bench) {
      for (const maker of makers) {
        const limit = maker(10)
        const refund = await charge(bench, limit, 4)
        same(await bench.store.refund([{ ...refund, units: 3 }]), [3], `${limit.id}, part`)
        same(await left(bench, limit), 9, `${limit.id}, left after part`)
        same(await bench.store.refund([{ ...refund, units: 10 }]), [1], `${limit.id}, the rest`)
        same(await left(bench, limit), 10, `${limit.id}, left after all`)
      }
    },
  },
  {
    name: 'a store refunds at the time of the charge, so nothing comes back once it has left the window',
    async run(bench) {
      for (const maker of makers.slice(0, 3)) {
        const limit = maker(10)
        const early = await charge(bench, limit, 4)
        bench.clock.advanceMs(25_000)
        await charge(bench, limit, 3)
        same(await bench.store.refund([early]), [0], `${limit.id}, long gone`)
        same(await left(bench, limit), 7, `${limit.id}, left`)
        bench.clock.advanceMs(25_000)
      }
    },
  },
  {
    name: 'a store lowers later totals of the log when an earlier charge is refunded',
    async run(bench) {
      const limit = slidingWindowLog({ limit: 10, window: '10s' })
      const first = await charge(bench, limit, 4)
      bench.clock.advanceMs(1_000)
      await charge(bench, limit, 5)
      await bench.store.refund([first])
      same(await left(bench, limit), 5, 'left after the refund')
      bench.clock.advanceMs(9_500)
      same(await left(bench, limit), 5, 'left when the refunded entry would have expired')
      bench.clock.advanceMs(500)
      same(await left(bench, limit), 10, 'left when the later entry has')
    },
  },
  {
    name: 'a store refunds the oldest units first without a reference',
    async run(bench) {
      const limit = slidingWindowLog({ limit: 10, window: '10s' })
      const first = await charge(bench, limit, 4)
      bench.clock.advanceMs(5_000)
      await charge(bench, limit, 4)
      same(await bench.store.refund([{ ...first, units: 4, chargedAtUs: null }]), [4], 'given back')
      bench.clock.advanceMs(5_000)
      same(await left(bench, limit), 6, 'the later four still count')
    },
  },
  {
    name: 'a store refunds nothing after a reset that was charged before it',
    async run(bench) {
      for (const maker of makers) {
        for (const pauseMs of [0, 1]) {
          const limit = maker(10)
          const before = await charge(bench, limit, 3)
          bench.clock.advanceMs(pauseMs)
          await bench.other.reset([check(bench, limit)])
          await bench.other.reset([check(bench, limit)])
          same(await left(bench, limit), 10, `${limit.id}, left after reset`)
          bench.clock.advanceMs(pauseMs)
          same(await bench.store.refund([before]), [0], `${limit.id}, given back to an unused key`)
          await charge(bench, limit, 10)
          same(await bench.store.refund([before]), [0], `${limit.id}, given back after ${pauseMs} ms`)
          same(await admitted(bench, limit, 3), 0, `${limit.id}, admitted beyond the limit`)
          await bench.store.reset([check(bench, limit)])
          bench.clock.advanceMs(1)
          const after = await charge(bench, limit, 4)
          same(await bench.store.refund([after]), [4], `${limit.id}, given back of what was charged since`)
          bench.clock.advanceMs(1)
          await bench.store.reset([check(bench, limit)])
        }
      }
    },
  },
  {
    name: 'a store takes back leased units only as far as a bucket has not refilled since',
    async run(bench) {
      const limit = tokenBucket({ capacity: 10, refillPerSecond: 1 })
      const held = await charge(bench, limit, 6)
      const heldSinceUs = (held.chargedAtUs ?? 0) + 2_000_000
      bench.clock.advanceMs(2_000)
      same(await bench.store.refund([{ ...held, units: 1, heldSinceUs }]), [1], 'in time')
      bench.clock.advanceMs(1_500)
      // Of the remaining five, two (rounded up) have been refilled since; three and a half are missing.
      await charge(bench, limit, 6)
      same(await bench.store.refund([{ ...held, units: 5, heldSinceUs }]), [3], 'too late for two of five')
      bench.clock.advanceMs(60_000)
      await charge(bench, limit, 10)
      same(await bench.store.refund([{ ...held, units: 5, heldSinceUs }]), [0], 'too late for all')
    },
  },
  {
    name: 'a store refunds nothing to a bucket that lacks more than the capacity of the refund',
    async run(bench) {
      const bucket = (capacity: number): Limit => tokenBucket({ capacity, refillPerSecond: 0.001 })
      const early = await charge(bench, bucket(10), 4)
      await charge(bench, bucket(100), 80)
      same(await bench.store.refund([early]), [0], 'given back with the old numbers')
      same(await left(bench, bucket(100)), 16, 'left with the new ones')
    },
  },
  {
    name: 'a store keeps what was used when the numbers change, up or down',
    async run(bench) {
      for (const maker of makers) {
        await admitted(bench, maker(10), 6)
        same(await left(bench, maker(20)), 14, `${maker(20).id}, raised`)
        same(await left(bench, maker(8)), 2, `${maker(8).id}, lowered`)
        same(await left(bench, maker(4)), 0, `${maker(4).id}, lowered below what was used`)
        same(await admitted(bench, maker(8), 5), 2, `${maker(8).id}, admitted under the new limit`)
      }
    },
  },
]

async function charge(bench: LawBench, limit: Limit, cost: number): Promise<Refund> {
  const chargedAtUs = (await decide(bench, limit, cost)).verdicts[0]?.[0]?.chargedAtUs ?? null
  if (chargedAtUs === null) throw new Error(`${limit.id}: expected a charge of ${cost}; it was denied`)
  return { check: check(bench, limit, cost), units: cost, chargedAtUs }
}

async function left(bench: LawBench, limit: Limit): Promise<number | undefined> {
  return (await askStore(bench.store, ask(check(bench, limit)), true)).verdicts[0]?.[0]?.remaining
}
