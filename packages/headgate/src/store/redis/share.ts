import { mulDivFloor } from '../../engine/exact-fraction.js'
import type { Limit } from '../../engine/limit.js'
import { HeadgateError, show } from '../../errors.js'

/** A part of every limit: `{ part: 1, of: 3 }` is a third. Whole numbers, so that the parts add up exactly. */
export interface Share {
  readonly part: number
  readonly of: number
}

/** Taken off a shared rate, so that the rounding of its product and quotient is down, too. */
const ROUND_DOWN = 1 - 2 ** -51

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
