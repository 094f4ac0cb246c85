import fc from 'fast-check'
import type { Limit } from '../../src/algorithms/algorithm.js'
import { ban } from '../../src/algorithms/ban.js'
import { concurrency } from '../../src/algorithms/concurrency.js'
import { quota } from '../../src/algorithms/quota.js'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import type { Check, Refund, Renewal } from '../../src/check/check.js'
import { type Answer, askStore, type Question } from '../../src/store/ask-store.js'
import type { MaybePromise, Store } from '../../src/store/store.js'
import type { ManualClock } from '../../src/testing/manual-clock.js'
import { isConcurrency } from '../support/limit-kinds.js'

/** One event of a store's history. Numbers choose among what exists, so that every history can be shrunk. */
export type Step =
  | { readonly kind: 'decide' | 'peek'; readonly alternatives: Pick[][]; readonly shadow: Pick[] }
  | {
      readonly kind: 'refund'
      readonly which: number
      readonly units: number
      readonly byTime: boolean
      readonly heldForUs?: number
    }
  | { readonly kind: 'renew'; readonly which: number }
  | { readonly kind: 'reset'; readonly check: Pick }
  | { readonly kind: 'wait'; readonly us: number }

interface Pick {
  readonly family: number
  readonly variant: number
  readonly scope: number
  readonly cost: number
}

const MOST = 2 ** 32 - 1

/** Limits of one family share a state: the same algorithm and window with other numbers. */
const families: readonly (readonly Limit[])[] = [
  [1, 3, 10, 25].map(limit => slidingWindowLog({ limit, window: '1s' })),
  [2, 10].map(limit => slidingWindowLog({ limit, window: '5ms' })),
  [100, MOST].map(limit => slidingWindowLog({ limit, window: '366d', name: 'year' })),
  [1, 4, 10, 25].map(limit => slidingWindowCounter({ limit, window: '1s' })),
  [3, 7].map(limit => slidingWindowCounter({ limit, window: '7ms' })),
  [1_000, 200_000, MOST].map(limit => slidingWindowCounter({ limit, window: '366d' })),
  [1, 4, 10, 25].map(limit => slidingWindowCounter({ limit, window: '1s', buckets: 4 })),
  [5, 9].map(limit => slidingWindowCounter({ limit, window: '10s', buckets: 7 })),
  [1, 5, 10, 25].map(capacity => tokenBucket({ capacity, refillPerSecond: 7 })),
  [3, 8].map(capacity => tokenBucket({ capacity, refillPerSecond: 1 / 3, name: 'slow' })),
  [1_000, MOST].map(capacity => tokenBucket({ capacity, refillPerSecond: 999_983.7, name: 'fast' })),
  [0, 1].map(limit => slidingWindowLog({ limit, window: '2s', name: 'ban' })),
  [1, 3, 10, 25].map(limit => concurrency({ limit, holdFor: '1s' })),
  ['2s', '5s'].map(holdFor => concurrency({ limit: 6, holdFor: holdFor as '2s', name: 'held' })),
  // Asking charges nothing: their strikes are the refunds of less than nothing.
  [
    ban({ after: 3, within: '1s', for: ['500ms', '2s', '10s'] }),
    ban({ after: 2, within: '1s', for: ['500ms', '2s', '10s'] }),
    ban({ after: 40, within: '5s', for: ['1s', '1s'] }),
    ban({ after: 1, within: '7ms', for: '366d' }),
  ],
  [1, 4, 10, 25].map(limit => quota({ limit, per: 'day', timeZone: 'Europe/Berlin' })),
  [1_000, 20_000_000, MOST].map(limit => quota({ limit, per: 'month', anchor: 31 })),
  [0, 3, 20].map(limit =>
    quota({ limit, per: 'week', anchor: 'sunday', rollover: { most: 5 }, name: 'carried' }),
  ),
  [0, 4].map(limit =>
    quota({ limit, per: 'year', timeZone: 'Asia/Kolkata', overage: 'count', name: 'over' }),
  ),
]

/** The counters, which tell windows apart by one digit. */
const COUNTERS = [3, 4, 5]
/** Nine of the shortest of their windows back, a digit is another window's; see "the counter after a step of the clock". */
const FURTHEST_BACK_US = 8 * 7_000

/** Quotas do so too: their shortest period is a day. */
const QUOTAS = [15, 16, 17, 18]
const FURTHEST_BACK_OF_QUOTAS_US = 8 * 23 * 3_600_000_000

/** How far the clock may step back: by any time if periods are not told apart by a digit. */
function furthestBackIn(history: readonly Step[]): number {
  const families = new Set(picksOf(history).map(({ family }) => family))
  if (COUNTERS.some(family => families.has(family))) return FURTHEST_BACK_US
  return QUOTAS.some(family => families.has(family)) ? FURTHEST_BACK_OF_QUOTAS_US : Number.POSITIVE_INFINITY
}

function picksOf(history: readonly Step[]): Pick[] {
  return history.flatMap(one => {
    if (one.kind === 'decide' || one.kind === 'peek') return [...one.alternatives.flat(), ...one.shadow]
    return one.kind === 'reset' ? [one.check] : []
  })
}

/** The same history with the log and counters in sub-windows in place of counters. */
export function withoutCounters(history: readonly Step[]): Step[] {
  const other = (pick: Pick): Pick =>
    COUNTERS.includes(pick.family) ? { ...pick, family: pick.family + 3 } : pick
  return history.map(one => {
    if (one.kind === 'reset') return { ...one, check: other(one.check) }
    if (one.kind !== 'decide' && one.kind !== 'peek') return one
    const distinct = (picks: Pick[]): Pick[] => [
      ...new Map(picks.map(other).map(pick => [`${pick.family}/${pick.scope}`, pick])).values(),
    ]
    return { ...one, alternatives: one.alternatives.map(distinct), shadow: distinct(one.shadow) }
  })
}

const cost = fc.oneof(
  { weight: 8, arbitrary: fc.integer({ min: 1, max: 3 }) },
  { weight: 3, arbitrary: fc.integer({ min: 0, max: 30 }) },
  { weight: 1, arbitrary: fc.integer({ min: 1, max: MOST }) },
)
const pick: fc.Arbitrary<Pick> = fc.record({
  family: fc.nat({ max: families.length - 1 }),
  variant: fc.nat({ max: 3 }),
  scope: fc.nat({ max: 1 }),
  cost,
})
/** At most one check of each family: a question never names a state twice. */
const checks = (minLength: number, maxLength: number): fc.Arbitrary<Pick[]> =>
  fc.uniqueArray(pick, { minLength, maxLength, selector: ({ family, scope }) => `${family}/${scope}` })
const alternatives = fc.oneof(
  { weight: 4, arbitrary: checks(1, 1).map(one => [one]) },
  { weight: 2, arbitrary: checks(2, 4).map(all => [all]) },
  { weight: 1, arbitrary: fc.array(checks(1, 2), { minLength: 2, maxLength: 3 }) },
)
const shadow = fc.oneof(
  { weight: 5, arbitrary: fc.constant<Pick[]>([]) },
  { weight: 1, arbitrary: checks(1, 2) },
)
const waitUs = fc.oneof(
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 3_000 }) },
  { weight: 6, arbitrary: fc.integer({ min: 0, max: 700_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 10_000_000 }) },
  { weight: 1, arbitrary: fc.integer({ min: 0, max: 3 * 366 * 86_400 }).map(seconds => seconds * 1_000_000) },
  { weight: 2, arbitrary: fc.integer({ min: -1_500_000, max: 0 }) },
  { weight: 1, arbitrary: fc.integer({ min: -3_600, max: 0 }).map(seconds => seconds * 1_000_000) },
  { weight: 2, arbitrary: fc.integer({ min: -3_000, max: 3_000 }).map(minutes => minutes * 60_000_000) },
  { weight: 1, arbitrary: fc.integer({ min: -8, max: 40 }).map(days => days * 86_400_000_000) },
  // Just up to, and just beyond, how far back a clock may step before a state is forgotten.
  {
    weight: 2,
    arbitrary: fc.constantFrom(
      -8_571_424,
      -8_571_425,
      -8_571_429,
      -4_666,
      -4_667,
      -750_000,
      -750_001,
      -900_001,
    ),
  },
)

export const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: fc.record({ kind: fc.constant('decide' as const), alternatives, shadow }) },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('peek' as const), alternatives, shadow }) },
  {
    weight: 2,
    arbitrary: fc.record({
      kind: fc.constant('refund' as const),
      which: fc.nat(),
      units: fc.oneof(fc.integer({ min: 1, max: 12 }), fc.integer({ min: -40, max: -1 })),
      byTime: fc.boolean(),
      heldForUs: fc.oneof(fc.constant(-1), fc.integer({ min: 0, max: 2_000_000 })),
    }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('renew' as const), which: fc.nat() }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('reset' as const), check: pick }) },
  { weight: 9, arbitrary: fc.record({ kind: fc.constant('wait' as const), us: waitUs }) },
)

/**
 * Plays a history against both stores and returns the answers of each, in order. All calls to the second are sent
 * before the first is awaited; one connection keeps them in order. Checks of one turn have an order only if they ask the
 * same, so that others get a turn of their own.
 */
export async function play(
  history: readonly Step[],
  stores: [Store, Store],
  clock: ManualClock,
  subject: string,
): Promise<MaybePromise<unknown>[]> {
  const outcomes: MaybePromise<unknown>[] = []
  let lastAsked = ''
  const charges: Refund[] = []
  const furthestBackUs = furthestBackIn(history)
  let latestUs = clock.nowUs()
  for (const one of history) {
    if (one.kind === 'wait') {
      // A server's clock never shows a time before 1970.
      const earliestUs = Math.max(0, latestUs - furthestBackUs)
      clock.advanceUs(Math.max(one.us, earliestUs - clock.nowUs()))
      latestUs = Math.max(latestUs, clock.nowUs())
      continue
    }
    const asked = JSON.stringify(one)
    if (asked !== lastAsked) await new Promise(setImmediate)
    lastAsked = asked
    const act = actionOf(one, charges, subject)
    const first = act(stores[0])
    outcomes.push(first, act(stores[1]))
    if (one.kind === 'decide') charges.push(...chargesOf(checksOfRequest(one, subject), first as Answer))
  }
  return outcomes
}

function actionOf(one: Exclude<Step, { kind: 'wait' }>, charges: readonly Refund[], subject: string) {
  if (one.kind === 'reset') {
    const check = checkOf(one.check, subject)
    return (store: Store) => store.reset([check])
  }
  if (one.kind === 'refund') {
    const charge = charges.length === 0 ? undefined : charges[one.which % charges.length]
    const refunds = charge === undefined ? [] : [refundOf(charge, one)]
    return (store: Store) => store.refund(refunds)
  }
  if (one.kind === 'renew') {
    const renewals = renewalOf(charges, one.which)
    return (store: Store) => store.renew?.(renewals)
  }
  const question = checksOfRequest(one, subject)
  return (store: Store) =>
    one.kind === 'decide' ? askStore(store, question) : askStore(store, question, true)
}

/** Renews a permit that was taken, whether it still exists or not. */
function renewalOf(charges: readonly Refund[], which: number): Renewal[] {
  const permits = charges.filter(({ check }) => isConcurrency(check.limit))
  const { check, chargedAtUs } = permits[which % permits.length] ?? {}
  return check === undefined || chargedAtUs == null ? [] : [{ check, takenAtUs: chargedAtUs }]
}

/** Refunds a charge, or units that were held in advance for a while. */
function refundOf(charge: Refund, one: Extract<Step, { kind: 'refund' }>): Refund {
  const { units, byTime, heldForUs = -1 } = one
  const heldSinceUs = heldForUs === -1 ? undefined : (charge.chargedAtUs ?? 0) + heldForUs
  return { check: charge.check, units, chargedAtUs: byTime ? charge.chargedAtUs : null, heldSinceUs }
}

function checksOfRequest(one: { alternatives: Pick[][]; shadow: Pick[] }, subject: string): Question {
  return {
    alternatives: one.alternatives.map(picks => picks.map(each => checkOf(each, subject))),
    shadow: one.shadow.map(each => checkOf(each, subject)),
  }
}

function checkOf({ family, variant, scope, cost }: Pick, subject: string): Check {
  const variants = families[family] as readonly Limit[]
  const limit = variants[variant % variants.length] as Limit
  return { subject, scope: scope === 0 ? 'global' : 'route', name: `p.${limit.id}`, limit, cost }
}

function chargesOf(question: Question, answer: Answer): Refund[] {
  const checks = question.alternatives[answer.charged] ?? []
  return checks.map((check, index) => ({
    check,
    units: check.cost,
    chargedAtUs: answer.verdicts[answer.charged]?.[index]?.chargedAtUs ?? null,
  }))
}
