/**
 * Adds up who was denied, over processes or over seconds that each list only their own worst, and knows how far the
 * sums may be off. A list that does not name a subject may have missed it `unlistedAtMost` times.
 */
import type { DeniedCaller, DeniedCallers } from 'headgate/internal'

type Sum = { -readonly [Field in keyof DeniedCaller]-?: DeniedCaller[Field] }

/** A bound holds for all but one estimate in a thousand. */
const LOG_ODDS = Math.log(2 * 1_000)

/** Merges lists. Policy and tier are those of the last that names the subject. */
export function mergeDeniedCallers(lists: readonly DeniedCallers[]): DeniedCallers {
  const unlistedAtMost = lists.reduce((all, list) => all + list.unlistedAtMost, 0)
  const unlistedVariance = lists.reduce((all, list) => all + varianceOfUnlisted(list), 0)
  const sums = new Map<string, Sum>()
  for (const list of lists) {
    const variance = varianceOfUnlisted(list)
    for (const deniedCaller of list.deniedCallers) {
      const sum = sums.get(deniedCaller.subject) ?? {
        ...deniedCaller,
        denied: 0,
        error: 0,
        missed: unlistedAtMost,
        variance: unlistedVariance,
      }
      sum.denied += deniedCaller.denied
      sum.error += deniedCaller.error
      // It may have been missed by the others, not by this one.
      sum.missed += (deniedCaller.missed ?? 0) - list.unlistedAtMost
      sum.variance += (deniedCaller.variance ?? 0) - variance
      sum.policy = deniedCaller.policy
      sum.tier = deniedCaller.tier
      sums.set(deniedCaller.subject, sum)
    }
  }
  const sampledOneIn = Math.max(1, ...lists.map(list => list.sampledOneIn))
  return { deniedCallers: [...sums.values()], unlistedAtMost, sampledOneIn }
}

/**
 * Returns by how much a count may be off, in either direction. If every denial was looked at, it is never off by more;
 * if one in g was, the inequalities of Bernstein and Chernoff bound what a sample of that many hides.
 */
export function errorOf({ error, missed = 0, variance = 0 }: DeniedCaller, sampledOneIn: number): number {
  const known = Math.max(error, missed)
  if (sampledOneIn === 1) return known
  return known + Math.ceil(Math.sqrt(2 * LOG_ODDS * variance) + 2 * LOG_ODDS * sampledOneIn)
}

function varianceOfUnlisted({ unlistedAtMost, sampledOneIn }: DeniedCallers): number {
  return sampledOneIn === 1 ? 0 : unlistedAtMost * sampledOneIn
}
