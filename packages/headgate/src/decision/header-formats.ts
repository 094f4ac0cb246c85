/** The headers of each style: legacy, the IETF draft, and its earlier editions. */
import type { Quota } from '../algorithms/algorithm.js'
import { advertisedPolicies, retryAfterSeconds, toSeconds, windowSeconds } from './advertised.js'
import { type Decision, type LimitVerdict, policyOf } from './decision.js'
import { fieldInteger, fieldString, type HeaderField, printable } from './header-field.js'
import type { HideableName } from './headers.js'

/**
 * The text that all responses about a limit share: a response carries up to nine headers, and formatting those that
 * never change took longer than the decision.
 */
interface LimitText {
  readonly policy: string
  readonly limit: string
  readonly window: string
  readonly burst: string | null
  /** The limit's name as a String of RFC 9651. */
  readonly name: string
  /** The limit as a policy of the IETF draft. */
  readonly item: string
}

/** By quota, because overrides make new ones, and by name, because several policies may share one. */
const written = new WeakMap<Quota, Map<string, LimitText>>()

function textOf({ name, quota }: LimitVerdict): LimitText {
  let texts = written.get(quota)
  if (texts === undefined) {
    texts = new Map()
    written.set(quota, texts)
  }
  let text = texts.get(name)
  if (text === undefined) {
    text = write(name, quota)
    texts.set(name, text)
  }
  return text
}

function write(name: string, quota: Quota): LimitText {
  const window = windowSeconds(quota)
  const span = quota.unit === undefined ? `w=${fieldInteger(window)}` : `qu=${fieldString(quota.unit)}`
  const item = `${fieldString(name)};q=${fieldInteger(quota.limit)};${span}`
  return {
    policy: printable(policyOf(name)),
    limit: String(quota.limit),
    window: String(window),
    burst: quota.burst === null ? null : String(quota.burst),
    name: fieldString(name),
    item: quota.burst === null ? item : `${item};headgate-burst=${fieldInteger(quota.burst)}`,
  }
}

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

/**
 * Returns `RateLimit-Policy` and `RateLimit` as draft-ietf-httpapi-ratelimit-headers-11 defines them: every limit of the
 * decision as a policy, and what is left of the binding one.
 */
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

/**
 * The formats of earlier drafts that proxies and clients still use. Their policies have no names, and their reset
 * is a delay: until everything is back or, after a denial, until Retry-After, as they require.
 */

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
