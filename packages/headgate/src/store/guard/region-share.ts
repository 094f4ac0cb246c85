import type { Limit } from '../../algorithms/algorithm.js'
import type { Check } from '../../engine/question.js'
import { mapChecks } from '../../engine/single-question.js'
import { HeadgateError, show } from '../../errors/headgate-error.js'
import type { Stage } from '../stage.js'

/** A part of every limit: `{ part: 1, of: 3 }` is a third. Whole numbers, so that the parts add up exactly. */
export interface RegionShare {
  readonly part: number
  readonly of: number
}

export function parseRegionShare({ part, of }: RegionShare): RegionShare {
  if (!Number.isInteger(part) || !Number.isInteger(of) || part < 1 || of < part || of > 1_000_000) {
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: 'share',
      expected: 'whole numbers { part, of } with 1 <= part <= of',
      got: `part ${show(part)} of ${show(of)}`,
    })
  }
  return { part, of }
}

/** The stage of a region: every limit is reduced to its share. */
export function withRegionShare(next: Stage, share: RegionShare): Stage {
  const cut = createShare(share)
  const cutCheck = (check: Check): Check => ({ ...check, limit: cut(check.limit) })
  return {
    source: next.source,
    ask: (action, question, waiter) => next.ask(action, mapChecks(question, cutCheck), waiter),
    refund: refunds => next.refund(refunds.map(refund => ({ ...refund, check: cutCheck(refund.check) }))),
    renew: renewals => next.renew(renewals.map(renewal => ({ ...renewal, check: cutCheck(renewal.check) }))),
    reset: next.reset,
    close: next.close,
  }
}

/**
 * Creates the function that reduces a limit to a region's share, rounded down: regions whose parts add up to the
 * whole never admit more than the limit together. A share below 1 is 0 and admits nothing.
 */
export function createShare({ part, of }: RegionShare): (limit: Limit) => Limit {
  const known = new WeakMap<Limit, Limit>()
  return limit => {
    let shared = known.get(limit)
    if (shared === undefined) {
      shared = limit.algorithm.part(limit, part, of)
      known.set(limit, shared)
    }
    return shared
  }
}
