/**
 * The formats of earlier drafts that proxies and clients still use. Their policies have no names, and their reset
 * is a delay: until everything is back or, after a denial, until Retry-After, as they require.
 */
import { advertisedPolicies, retryAfterSeconds, toSeconds, windowSeconds } from './advertised.js'
import type { Decision, LimitVerdict } from './decision.js'
import { fieldInteger, fieldString, type HeaderField } from './header-field.js'

/** The form that Envoy and Limitador send: the policies are part of the limit. */
export function draft03Headers(decision: Decision, binding: LimitVerdict): HeaderField[] {
  const { limit, remaining, reset } = numbers(decision, binding)
  return [
    ['X-RateLimit-Limit', `${limit}, ${policies(decision, binding)}`],
    ['X-RateLimit-Remaining', remaining],
    ['X-RateLimit-Reset', reset],
  ]
}

/** One header per number. */
export function draft06Headers(decision: Decision, binding: LimitVerdict): HeaderField[] {
  const { limit, remaining, reset } = numbers(decision, binding)
  return [
    ['RateLimit-Policy', policies(decision, binding)],
    ['RateLimit-Limit', limit],
    ['RateLimit-Remaining', remaining],
    ['RateLimit-Reset', reset],
  ]
}

/** All numbers in one dictionary. */
export function draft07Headers(decision: Decision, binding: LimitVerdict): HeaderField[] {
  const { limit, remaining, reset } = numbers(decision, binding)
  return [
    ['RateLimit-Policy', policies(decision, binding)],
    ['RateLimit', `limit=${limit}, remaining=${remaining}, reset=${reset}`],
  ]
}

function numbers(decision: Decision, binding: LimitVerdict) {
  return {
    limit: fieldInteger(binding.quota.limit),
    remaining: fieldInteger(binding.remaining),
    reset: fieldInteger(retryAfterSeconds(decision) ?? toSeconds(decision.resetAfterMs)),
  }
}

/**
 * Without names, two limits that advertise one quota, as those of a burst do, are the same policy and listed once.
 */
function policies(decision: Decision, binding: LimitVerdict): string {
  const items = advertisedPolicies(decision, binding).map(({ quota }) => {
    const item = `${fieldInteger(quota.limit)};w=${fieldInteger(windowSeconds(quota))}`
    if (quota.unit !== undefined) return `${item};comment=${fieldString(quota.unit)}`
    return quota.burst === null ? item : `${item};burst=${fieldInteger(quota.burst)}`
  })
  return [...new Set(items)].join(', ')
}
