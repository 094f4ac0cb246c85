import { toSeconds } from './advertised.js'
import type { Decision, LimitVerdict } from './decision.js'
import { type HeaderField, printable } from './header-field.js'
import type { HideableName } from './headers.js'
import { textOf } from './limit-text.js'

/**
 * Returns the `X-RateLimit-*` family, about the binding limit. With a burst, Limit and Burst are the two numbers of
 * the policy, Remaining is what can be used now (so it may be above Limit) and Reset is when all of it is back.
 * Reset is a Unix time, unlike in any IETF draft.
 */
export function legacyHeaders(
  decision: Decision,
  binding: LimitVerdict,
  hide: readonly HideableName[],
): HeaderField[] {
  const { limit, window, policy, burst } = textOf(binding)
  const headers: HeaderField[] = [
    ['X-RateLimit-Limit', limit],
    ['X-RateLimit-Remaining', String(binding.remaining)],
    ['X-RateLimit-Reset', String(toSeconds(decision.resetAt))],
    ['X-RateLimit-Window', window],
  ]
  if (!hide.includes('policy')) headers.push(['X-RateLimit-Policy', policy])
  if (decision.tier !== null && !hide.includes('tier'))
    headers.push(['X-RateLimit-Tier', printable(decision.tier)])
  if (burst !== null) headers.push(['X-RateLimit-Burst', burst])
  headers.push(['X-RateLimit-Cost', String(decision.cost)])
  return headers
}
