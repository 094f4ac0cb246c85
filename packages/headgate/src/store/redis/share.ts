import { mulDivFloor } from '../../engine/exact-fraction.js'
import type { Limit } from '../../engine/limit.js'
import type { Check, Question, Refund } from '../../engine/question.js'
import { HeadgateError, show } from '../../errors.js'
import type { Store } from '../store.js'
import { putOf, storeWith } from '../waiter.js'

/** A part of every limit: `{ part: 1, of: 3 }` is a third. Whole numbers, so that the parts add up exactly. */
export interface Share {
  readonly part: number
  readonly of: number
}

/** Taken off a shared rate, so that the rounding of its product and quotient is down, too. */
const ROUND_DOWN = 1 - 2 ** -51

/** The store of a region: every limit is its share. */
export function withShare(store: Store, share: Share): Store {
  const put = putOf(store)
  const cut = createShare(share)
  const cutCheck = (check: Check): Check => ({ ...check, limit: cut(check.limit) })
  const cutQuestion = ({ alternatives, shadow, onStoreFailure }: Question): Question => ({
    alternatives: alternatives.map(checks => checks.map(cutCheck)),
    shadow: shadow.map(cutCheck),
    ...(onStoreFailure && { onStoreFailure }),
  })
  return storeWith((how, question, waiter) => put(how, cutQuestion(question), waiter), {
    ...store,
    refund: (refunds: readonly Refund[]) =>
      store.refund(refunds.map(refund => ({ ...refund, check: cutCheck(refund.check) }))),
  })
}

/**
 * Makes the function that cuts a limit down to a region's share, rounded down: regions whose parts add up to the whole
 * never admit more than the limit together. A share below 1 is 0 and admits nothing.
 */
export function createShare(share: Share): (limit: Limit) => Limit {
  const { part, of } = share
  if (!Number.isInteger(part) || !Number.isInteger(of) || part < 1 || of < part || of > 1_000_000) {
    throw new HeadgateError(
      'ERR_HEADGATE_INVALID_OPTION',
      `share: expected whole numbers { part, of } with 1 <= part <= of; got part ${show(part)} of ${show(of)}`,
    )
  }
  const known = new WeakMap<Limit, Limit>()
  return limit => {
    let shared = known.get(limit)
    if (shared === undefined) {
      const units = mulDivFloor(limit.limit, part, of)
      shared =
        limit.algorithm === 'token-bucket'
          ? { ...limit, limit: units, refillPerSecond: shareOfRate(limit.refillPerSecond, share) }
          : { ...limit, limit: units }
      known.set(limit, shared)
    }
    return shared
  }
}

function shareOfRate(refillPerSecond: number, { part, of }: Share): number {
  return part === of ? refillPerSecond : ((refillPerSecond * part) / of) * ROUND_DOWN
}
