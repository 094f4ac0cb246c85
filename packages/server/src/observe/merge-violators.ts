/**
 * Adds up who was denied, over processes or over seconds that each list only their own worst, and knows how far the
 * sums may be off. A list that does not name a subject may have missed it `unlistedAtMost` times.
 */
import type { Violator, Violators } from 'headgate/statistics'

type Sum = { -readonly [Field in keyof Violator]-?: Violator[Field] }

/** A bound holds for all but one estimate in a thousand. */
const LOG_ODDS = Math.log(2 * 1_000)

/** Merges lists. Policy and tier are those of the last that names the subject. */
export function mergeViolators(lists: readonly Violators[]): Violators {
  const unlistedAtMost = lists.reduce((all, list) => all + list.unlistedAtMost, 0)
  const unlistedVariance = lists.reduce((all, list) => all + varianceOfUnlisted(list), 0)
  const sums = new Map<string, Sum>()
  for (const list of lists) {
    const variance = varianceOfUnlisted(list)
    for (const violator of list.violators) {
      const sum = sums.get(violator.subject) ?? {
        ...violator,
        denied: 0,
        error: 0,
        missed: unlistedAtMost,
        variance: unlistedVariance,
      }
      sum.denied += violator.denied
      sum.error += violator.error
      // It may have been missed by the others, not by this one.
      sum.missed += (violator.missed ?? 0) - list.unlistedAtMost
      sum.variance += (violator.variance ?? 0) - variance
      sum.policy = violator.policy
      sum.tier = violator.tier
      sums.set(violator.subject, sum)
    }
  }
  const sampledOneIn = Math.max(1, ...lists.map(list => list.sampledOneIn))
  return { violators: [...sums.values()], unlistedAtMost, sampledOneIn }
}

/**
 * Returns by how much a count may be off, in either direction. If every denial was looked at, it is never off by more;
 * if one in g was, the inequalities of Bernstein and Chernoff bound what a sample of that many hides.
 */
export function errorOf({ error, missed = 0, variance = 0 }: Violator, sampledOneIn: number): number {
  const known = Math.max(error, missed)
  if (sampledOneIn === 1) return known
  return known + Math.ceil(Math.sqrt(2 * LOG_ODDS * variance) + 2 * LOG_ODDS * sampledOneIn)
}

function varianceOfUnlisted({ unlistedAtMost, sampledOneIn }: Violators): number {
  return sampledOneIn === 1 ? 0 : unlistedAtMost * sampledOneIn
}
