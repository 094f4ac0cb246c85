import type { Decision } from 'headgate'
import type { Quota } from 'headgate/internal'

const PERIODS = new Map([
  [1_000_000, 'a second'],
  [60_000_000, 'a minute'],
  [3_600_000_000, 'an hour'],
  [86_400_000_000, 'a day'],
  [7 * 86_400_000_000, 'a week'],
  [31 * 86_400_000_000, 'a month'],
  [366 * 86_400_000_000, 'a year'],
])

/** Formats `10 a minute, 20 at once`. */
export function quotaWords({ limit, windowUs, burst, unit }: Quota): string {
  if (unit === 'concurrent-requests') return `${limit.toLocaleString('en')} at once`
  const period = PERIODS.get(windowUs) ?? `in ${Math.ceil(windowUs / 100_000) / 10} s`
  const atOnce = burst === null ? '' : `, ${burst.toLocaleString('en')} at once`
  return `${limit.toLocaleString('en')} ${period}${atOnce}`
}

/** The policy of all tiers' limits. */
const OF_TIERS = 'tier'

/** Names whose limit decided: `tier free`, or `policy login` of a rule, whatever the caller's tier. */
export function limitOwner({ tier, policy }: Pick<Decision, 'tier' | 'policy'>): string {
  return policy === OF_TIERS ? `tier ${tier}` : `policy ${policy}`
}

/** What a denial's line says for machines. */
export function denialFields(status: number, subject: string, decision: Decision) {
  const { reference, rule, policy, tier, binding, source, reason, retryAfterMs } = decision
  return {
    status,
    subject,
    reference,
    rule,
    policy,
    tier,
    limit: binding?.name ?? null,
    source,
    reason,
    retryAfterMs,
  }
}

/** Explains on one line why a subject was denied with this status. */
export function denialWords(status: number, subject: string, decision: Decision): string {
  const { binding, retryAfterMs } = decision
  const allows = binding === null ? 'cannot be checked at the moment' : `allows ${quotaWords(binding.quota)}`
  const next =
    retryAfterMs === null ? 'retrying will not help' : `next in ${Math.ceil(retryAfterMs / 1000)} s`
  return `${status} for ${subject}: ${limitOwner(decision)} ${allows}; ${next}`
}
