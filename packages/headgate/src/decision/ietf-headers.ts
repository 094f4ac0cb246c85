/** `RateLimit-Policy` and `RateLimit` as draft-ietf-httpapi-ratelimit-headers-11 defines them. */
import { advertisedPolicies, retryAfterSeconds, windowSeconds } from './advertised.js'
import type { Decision, LimitVerdict } from './decision.js'
import { fieldInteger, fieldString, type HeaderField } from './header-field.js'
import type { HideableName } from './headers.js'
import { textOf } from './limit-text.js'

/** Returns every limit of the decision as a policy, and what is left of the binding one. */
export function draft11Headers(
  decision: Decision,
  binding: LimitVerdict,
  hide: readonly HideableName[],
): HeaderField[] {
  const available = fieldInteger(binding.remaining)
  const effectiveWindow = fieldInteger(effectiveWindowSeconds(decision, binding))
  const verdicts = advertisedPolicies(decision, binding)
  const name = hide.includes('policy')
    ? fieldString(limitNumber(verdicts.indexOf(binding)))
    : textOf(binding).name
  return [
    ['RateLimit-Policy', policiesOf(verdicts, hide)],
    ['RateLimit', `${name};r=${available};t=${effectiveWindow}`],
  ]
}

/** Returns the name of a limit whose policy is hidden. */
export function limitNumber(index: number): string {
  return `limit-${index + 1}`
}

function policiesOf(verdicts: readonly LimitVerdict[], hide: readonly HideableName[]): string {
  const isHidden = hide.includes('policy')
  return verdicts
    .map((verdict, index) => {
      const { name, item } = textOf(verdict)
      return isHidden ? `${fieldString(limitNumber(index))}${item.slice(name.length)}` : item
    })
    .join(', ')
}

/**
 * Returns `t`: the seconds within which no more than `r` should be used. After a denial it ends when Retry-After does.
 *
 * Otherwise it is the quota's window. A verdict does not say when its next unit frees, but a client that spends `r`
 * over `t` only spends what it already has, so a longer `t` is never wrong, only more careful. The time to a full
 * reset would be just as true but misleading: a bucket one token short of 300 is full within a second, and `r=299;t=1`
 * would read as 299 a second. Over the window, the pace is never above one burst per window.
 */
function effectiveWindowSeconds(decision: Decision, binding: LimitVerdict): number {
  return retryAfterSeconds(decision) ?? windowSeconds(binding.quota)
}
