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
  return tier === null ? '' : tierNamed(tier)
}

function tierNamed(tier: string): string {
  return `${OF_TIERS} ${tier}`
}

/** Returns the names of the policies and tiers in rows by policy and by tier. */
export function namesOf(
  policies: readonly { readonly name: string | null }[],
  tiers: readonly { readonly name: string | null }[],
): readonly string[] {
  return [
    ...policies.flatMap(({ name }) => (name === null || name === OF_TIERS ? [] : name)),
    ...tiers.flatMap(({ name }) => (name === null ? [] : tierNamed(name))),
  ]
}

/** Turns the words of `chargedTo` back into a query for the server. */
export function askedBy(words: string): { readonly policy: string } | { readonly tier: string } {
  const text = words.trim()
  return text.startsWith(`${OF_TIERS} `) ? { tier: text.slice(OF_TIERS.length + 1).trim() } : { policy: text }
}
