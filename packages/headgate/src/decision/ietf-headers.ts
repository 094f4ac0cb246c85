/** `RateLimit-Policy` and `RateLimit` as draft-ietf-httpapi-ratelimit-headers-11 defines them. */
import { retryAfterSeconds, windowSeconds } from './advertised.js'
import type { Decision } from './decision.js'
import { fieldInteger, type HeaderField } from './header-field.js'
import { textOf } from './limit-text.js'
import type { LimitVerdict } from './limit-verdict.js'

/** Every limit of the decision as a policy, and what is available of the one that binds. */
export function draft11Headers(decision: Decision, binding: LimitVerdict): HeaderField[] {
  const available = fieldInteger(binding.remaining)
  const effectiveWindow = fieldInteger(effectiveWindowSeconds(decision, binding))
  return [
    ['RateLimit-Policy', policiesOf(decision.verdicts)],
    ['RateLimit', `${textOf(binding).name};r=${available};t=${effectiveWindow}`],
  ]
}

function policiesOf(verdicts: readonly LimitVerdict[]): string {
  return verdicts.map(verdict => textOf(verdict).item).join(', ')
}

/**
 * `t`: the seconds within which no more than `r` should be used. After a denial it ends when Retry-After does.
 *
 * Otherwise it is the quota's window. A verdict does not say when its next unit frees, but a client that spends `r`
 * over `t` only spends what it already has, so a longer `t` is never wrong, only more careful. The time to a full
 * reset would be as true and invite worse: a bucket one token short of 300 is full within a second, and `r=299;t=1`
 * would read as 299 a second. Told over the window, the pace is never above one burst a window.
 */
function effectiveWindowSeconds(decision: Decision, binding: LimitVerdict): number {
  return retryAfterSeconds(decision) ?? windowSeconds(binding.quota)
}
