/** The limits of a tier have no policy of their own. */
const OF_TIERS = 'tier'

/** Whose limits a caller met: `search`, or `tier free`. */
export function chargedTo({
  policy,
  tier,
}: {
  readonly policy: string | null
  readonly tier: string | null
}): string {
  if (policy !== null && policy !== OF_TIERS) return policy
  return tier === null ? '' : `${OF_TIERS} ${tier}`
}
