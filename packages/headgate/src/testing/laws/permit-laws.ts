import { concurrency } from '../../algorithms/concurrency.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import type { Refund, Renewal } from '../../check/check.js'
import { askStore } from '../../store/ask-store.js'
import { seededRandom } from '../seeded-random.js'
import { admitted, ask, check, decide, type Law, type LawBench, same } from './law.js'

const HOLD_MS = 10_000
const permits = (limit: number) => concurrency({ limit, holdFor: '10s' })

/** The promises of a concurrency limit. Unlike for other limits, the wait is only a hint. */
export const permitLaws: readonly Law[] = [
  {
    name: 'a store frees a permit when it is given back, once, and never another',
    async run(bench) {
      const first = await take(bench, 2)
      const second = await take(bench, 2)
      same((await decide(bench, permits(2))).charged, -1, 'a third')
      same(await bench.other.refund([giveBack(first)]), [1], 'given back')
      same(await bench.store.refund([giveBack(first)]), [0], 'given back twice')
      same(await admitted(bench, permits(2), 5), 1, 'admitted afterwards')
      same(await bench.store.refund([giveBack(second)]), [1], 'the other, given back')
    },
  },
  {
    name: 'a store distinguishes permits taken in one microsecond',
    async run(bench) {
      const taken = [await take(bench, 3), await take(bench, 3), await take(bench, 3)]
      same(new Set(taken.map(({ takenAtUs }) => takenAtUs)).size, 3, 'names')
      for (const one of taken) same(await bench.store.refund([giveBack(one)]), [1], 'given back')
      same(await admitted(bench, permits(3), 5), 3, 'admitted afterwards')
    },
  },
  {
    name: 'a store frees an unrenewed permit after its time and not a microsecond sooner',
    async run(bench) {
      const lost = await take(bench, 2)
      const renewed = await take(bench, 2)
      bench.clock.advanceMs(HOLD_MS - 1)
      same(await renew(bench, renewed), [true], 'renewed')
      bench.clock.advanceUs(999)
      same(await admitted(bench, permits(2), 1), 0, 'admitted a microsecond early')
      bench.clock.advanceUs(1)
      same(await admitted(bench, permits(2), 3), 1, 'admitted when one has expired')
      same(await bench.store.refund([giveBack(lost)]), [0], 'the expired one, given back')
      same(await bench.store.refund([giveBack(renewed)]), [1], 'the renewed one, given back')
    },
  },
  {
    name: 'a store renews an expired place of a request in flight, if there is room',
    async run(bench) {
      const late = await take(bench, 1)
      bench.clock.advanceMs(HOLD_MS)
      const other = await take(bench, 1)
      same(await renew(bench, late), [false], 'renewed although another has it')
      await bench.store.refund([giveBack(other)])
      same(await renew(bench, late), [true], 'renewed when there is room')
      same(await renew(bench, late), [true], 'renewed twice')
      same(await admitted(bench, permits(1), 1), 0, 'admitted beside it')
      same(await bench.store.refund([giveBack(late)]), [1], 'given back')
    },
  },
  {
    name: 'a store takes no permit for a request that another limit denies, and no units for one that finds no permit',
    async run(bench) {
      const rate = slidingWindowLog({ limit: 2, window: '1m' })
      const question = ask(check(bench, rate), check(bench, permits(1)))
      const first = await askStore(bench.store, question)
      same(first.charged, 0, 'the first')
      same((await askStore(bench.store, question)).charged, -1, 'one that finds no permit')
      same((await askStore(bench.store, question, true)).verdicts[0]?.[0]?.remaining, 1, 'left of the rate')
      const takenAtUs = first.verdicts[0]?.[1]?.chargedAtUs ?? 0
      await bench.store.refund([giveBack({ check: check(bench, permits(1)), takenAtUs })])
      same((await askStore(bench.store, question)).charged, 0, 'one that finds a permit')
      bench.clock.advanceMs(HOLD_MS)
      same((await askStore(bench.store, question)).charged, -1, 'one that the rate denies')
      same((await askStore(bench.store, question, true)).verdicts[0]?.[1]?.remaining, 1, 'permits left')
    },
  },
  {
    name: 'a store suggests a wait of at most a second, and at most until enough permits expire',
    async run(bench) {
      await take(bench, 1)
      same((await decide(bench, permits(1))).verdicts[0]?.[0]?.retryAfterUs, 1_000_000, 'early')
      bench.clock.advanceMs(HOLD_MS - 300)
      same((await decide(bench, permits(1))).verdicts[0]?.[0]?.retryAfterUs, 300_000, 'late')
    },
  },
  {
    name: 'a store locks no permit when the clock steps back',
    async run(bench) {
      same(await admitted(bench, permits(3), 5), 3, 'before the step')
      bench.clock.advanceMs(-1_000)
      same(await admitted(bench, permits(3), 5), 0, 'a second back')
      bench.clock.advanceMs(-3_600_000)
      same(await admitted(bench, permits(3), 5), 3, 'an hour back')
    },
  },
  {
    name: 'a store never has more unexpired permits than the limit, with requests that end, last and get lost',
    run: holdLimit,
  },
]

async function holdLimit(bench: LawBench): Promise<void> {
  const random = seededRandom(11)
  const limit = 5
  let inFlight: { permit: Renewal; expiresAtUs: number }[] = []
  let taken = 0
  for (let step = 0; step < 400; step++) {
    bench.clock.advanceUs(Math.floor(random() * 2_000_000))
    const nowUs = bench.clock.nowUs()
    inFlight = inFlight.filter(({ expiresAtUs }) => expiresAtUs > nowUs)
    const dice = random()
    const one = inFlight[Math.floor(random() * inFlight.length)]
    if (dice < 0.6) {
      const store = dice < 0.3 ? bench.store : bench.other
      const answer = await askStore(store, ask(check(bench, permits(limit))))
      const takenAtUs = answer.verdicts[0]?.[0]?.chargedAtUs ?? null
      same(takenAtUs !== null, inFlight.length < limit, `admitted with ${inFlight.length} in flight`)
      if (takenAtUs === null) continue
      taken++
      const permit = { check: check(bench, permits(limit)), takenAtUs }
      inFlight.push({ permit, expiresAtUs: nowUs + HOLD_MS * 1000 })
    } else if (one !== undefined && dice < 0.8) {
      same(await bench.other.refund([giveBack(one.permit)]), [1], 'given back')
      inFlight = inFlight.filter(other => other !== one)
    } else if (one !== undefined) {
      same(await renew(bench, one.permit), [true], 'renewed')
      one.expiresAtUs = nowUs + HOLD_MS * 1000
    }
  }
  if (taken < 50) throw new Error(`expected a history worth looking at; got ${taken} permits taken`)
}

async function take(bench: LawBench, limit: number): Promise<Renewal> {
  const takenAtUs = (await decide(bench, permits(limit))).verdicts[0]?.[0]?.chargedAtUs ?? null
  if (takenAtUs === null) throw new Error(`expected a permit among ${limit}; it was denied`)
  return { check: check(bench, permits(limit)), takenAtUs }
}

async function renew({ store }: LawBench, permit: Renewal): Promise<readonly boolean[]> {
  if (store.renew === undefined) throw new Error('expected a store that renews permits; it has no renew')
  return store.renew([permit])
}

function giveBack({ check, takenAtUs }: Renewal): Refund {
  return { check, units: check.cost, chargedAtUs: takenAtUs }
}
