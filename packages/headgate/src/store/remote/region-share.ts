import type { Limit } from '../../algorithms/algorithm.js'
import { NamedLimit, type Plan } from '../../check/plan.js'
import { HeadgateError, show } from '../../errors/headgate-error.js'

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

/**
 * Every limit reduced to a region's share, rounded down: regions whose parts add up to the whole never admit more than
 * the limit together. A share below 1 is 0 and admits nothing.
 */
export class RegionLimits {
  private readonly limits = new WeakMap<Limit, Limit>()
  private readonly plans = new WeakMap<Plan, Plan>()

  constructor(private readonly share: RegionShare) {}

  planOf(plan: Plan): Plan {
    let shared = this.plans.get(plan)
    if (shared === undefined) {
      shared = plan.map(({ name, limit }) => new NamedLimit(name, this.limitOf(limit)))
      this.plans.set(plan, shared)
    }
    return shared
  }

  limitOf(limit: Limit): Limit {
    let shared = this.limits.get(limit)
    if (shared === undefined) {
      const { part, of } = this.share
      shared = limit.algorithm.part(limit, part, of)
      this.limits.set(limit, shared)
    }
    return shared
  }
}
