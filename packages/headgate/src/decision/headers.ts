import type { Quota } from '../algorithms/algorithm.js'
import { type HeadgateError, invalidOption } from '../errors/headgate-error.js'
import { HEADER_STYLES, type HeaderStyle } from '../policy/config.js'
import { type Decision, isWider, type LimitVerdict, policyOf } from './decision.js'

/** One response header; no name occurs twice in a list of them. */
export type HeaderField = readonly [name: string, value: string]

/** The edition of the IETF draft that headers follow. */
export type HeaderDraft = 'draft-03' | 'draft-06' | 'draft-07' | 'draft-11'

/** A name that a response may hide. */
export type HideableName = 'policy' | 'tier'

/** The parts of a decision that a response leaves out, and those it adds. */
export interface ResponseOptions {
  /** Names to leave out. Limits are numbered where a name is needed. */
  readonly hide?: readonly HideableName[]
  /** How much later than possible a denied client is told to come back, so that not all come at once. */
  readonly laterByMs?: number
}

export interface HeaderOptions extends ResponseOptions {
  /** Default: what the policy file says, else `legacy`, or `both` if a draft is given. */
  readonly style?: HeaderStyle
  /** Default `draft-11`. */
  readonly draft?: HeaderDraft
}

const HIDEABLE: readonly string[] = ['policy', 'tier'] satisfies HideableName[]
const NOTHING: readonly HideableName[] = []
const STYLES: readonly string[] = HEADER_STYLES
type DraftHeaders = (
  decision: Decision,
  binding: LimitVerdict,
  hide: readonly HideableName[],
) => HeaderField[]
const DRAFTS: ReadonlyMap<string, DraftHeaders> = new Map([
  ['draft-03', draft03Headers],
  ['draft-06', draft06Headers],
  ['draft-07', draft07Headers],
  ['draft-11', draft11Headers],
])

/**
 * Returns the headers of a response to this decision, allowed or denied. Every value is legal in HTTP. If no quota
 * is known (a failure mode, an unlimited caller) none is advertised. `Retry-After` belongs to HTTP and to no style:
 * every denial that a wait can end carries it.
 */
export function decisionHeaders(decision: Decision, options: HeaderOptions = {}): readonly HeaderField[] {
  if (typeof decision?.allowed !== 'boolean') {
    throw invalidOption('decision', 'what check resolves to, awaited', decision)
  }
  return createHeadersOf(options)(decision)
}

/** Creates `decisionHeaders` for options that never change. Throws for invalid ones. */
export function createHeadersOf(options: HeaderOptions): (decision: Decision) => readonly HeaderField[] {
  const { style, draft = 'draft-11', hide = NOTHING, laterByMs } = options
  const usual = options.draft === undefined ? 'legacy' : 'both'
  rejectHeaderMistakes(style === undefined ? usual : style, draft, hide)
  const draftHeaders = DRAFTS.get(draft) as DraftHeaders
  return function headersOf(decision) {
    const its = style ?? decision.headerStyle ?? usual
    const binding = its === 'none' ? null : advertisedLimit(decision)
    const headers = binding === null || its === 'ietf' ? [] : legacyHeaders(decision, binding, hide)
    if (binding !== null && its !== 'legacy') overrule(headers, draftHeaders(decision, binding, hide))
    const retryAfter = retryAfterSeconds(decision, laterByMs)
    if (retryAfter !== null) headers.push(['Retry-After', String(retryAfter)])
    return headers
  }
}

/** Rejects what `decisionHeaders` would, for validation before there is a decision. */
export function rejectHeaderMistakes(
  style: unknown,
  draft: unknown = 'draft-11',
  hide: unknown = NOTHING,
): void {
  if (!DRAFTS.has(draft as string)) throw invalid('draft', [...DRAFTS.keys()], draft)
  if (!STYLES.includes(style as string)) throw invalid('style', STYLES, style)
  if (hide === NOTHING) return
  if (!Array.isArray(hide)) throw invalidOption('hide', 'a list of policy and tier', hide)
  for (const name of hide) if (!HIDEABLE.includes(name)) throw invalid('hide', HIDEABLE, name)
}

/** Draft-03, which must be requested, replaces the legacy headers whose names it shares. */
function overrule(headers: HeaderField[], drafted: readonly HeaderField[]): void {
  for (const field of drafted) {
    let place = 0
    while (place < headers.length && headers[place]?.[0] !== field[0]) place++
    headers[place] = field
  }
}

function invalid(field: string, expected: readonly string[], got: unknown): HeadgateError {
  return invalidOption(field, `one of ${expected.join(', ')}`, got)
}

const MAX_INTEGER = 999_999_999_999_999
// Every name a policy can have; one test is much cheaper than two replacements that find nothing.
const PLAIN = /^[\w.-]*$/
const UNPRINTABLE = /[^\x20-\x7e]/g
const ESCAPED = /["\\]/g

/** Formats a non-negative Integer of RFC 9651. A number beyond its 15 digits becomes the largest one. */
function fieldInteger(value: number): string {
  return String(Math.min(MAX_INTEGER, Math.max(0, value)))
}

/** Formats a String of RFC 9651, in quotes. */
function fieldString(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`
  return `"${printable(text).replace(ESCAPED, '\\$&')}"`
}

/**
 * Replaces everything but printable ASCII by `?`. Names are validated when a policy is made; one that came another
 * way must still not break the response (Node throws for it) or, with a line break, inject a header.
 */
export function printable(text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNPRINTABLE, '?')
}

/**
 * Returns the limit a client may be told about: the one that binds, or null if no quota is known. A failure mode
 * looked at no limit ('open', 'closed') or only at this process's share of it ('local'), and clients would believe
 * a number made up from that.
 */
export function advertisedLimit(decision: Decision): LimitVerdict | null {
  const { source, allowed } = decision
  if (source !== 'redis' && source !== 'memory') return null
  if (!allowed && decision.reason === 'banned') return null
  const { binding } = decision
  return allowed && binding?.quota.unit !== undefined ? leastOfRates(decision) : binding
}

/**
 * An admitted caller is told what is left over time, if that is limited, not what is left of requests in flight.
 */
function leastOfRates({ verdicts, binding }: Decision): LimitVerdict | null {
  const rates = verdicts.filter(({ quota }) => quota.unit === undefined)
  return rates.toSorted((one, other) => one.remaining - other.remaining)[0] ?? binding
}

/**
 * Returns the limits a client is told about: its own, and of those it shares with the networks around it only the
 * one that binds.
 */
function advertisedPolicies({ verdicts }: Decision, binding: LimitVerdict): readonly LimitVerdict[] {
  if (!verdicts.some(isKeptBack)) return verdicts
  return verdicts.filter(verdict => verdict === binding || !isKeptBack(verdict))
}

/** How many strikes are left before a ban is nothing to be told. */
function isKeptBack(verdict: LimitVerdict): boolean {
  return verdict.quota.unit === 'strikes' || isWider(verdict)
}

/** Rounded up, against the client: HTTP counts in whole seconds, and an early retry would fail. */
function toSeconds(ms: number): number {
  return Math.ceil(ms / 1000)
}

/** Returns the window in whole seconds. One shorter than a second is 1, because a window of 0 means nothing. */
function windowSeconds(quota: Quota): number {
  return Math.max(1, Math.ceil(quota.windowUs / 1_000_000))
}

/**
 * Returns the seconds after which a denied request is admitted if nobody else asks; null if allowed or if no wait
 * is long enough. Never 0: "retry at once" would turn a denial into a loop.
 */
export function retryAfterSeconds(decision: Decision, laterByMs = 0): number | null {
  if (decision.allowed || decision.retryAfterMs === null) return null
  return Math.max(1, toSeconds(decision.retryAfterMs + laterByMs))
}

/**
 * The text that all responses about a limit share: a response carries up to nine headers, and formatting those that
 * never change took longer than the decision.
 */
interface LimitText {
  /** The limit's name as a String of RFC 9651. */
  readonly name: string
  /** The limit as a policy of the IETF draft. */
  readonly item: string
  /** Its `X-RateLimit-*` headers for callers of each tier, and for those without one. */
  readonly legacy: Map<string | null, LegacyText>
}

interface LegacyText {
  readonly hidesPolicy: boolean
  readonly hidesTier: boolean
  /** All of them; Remaining and Reset are yet to be filled in, and Cost if it is not 1. */
  readonly fields: readonly HeaderField[]
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
  const span =
    quota.unit === undefined ? `w=${fieldInteger(windowSeconds(quota))}` : `qu=${fieldString(quota.unit)}`
  const item = `${fieldString(name)};q=${fieldInteger(quota.limit)};${span}`
  return {
    name: fieldString(name),
    item: quota.burst === null ? item : `${item};headgate-burst=${fieldInteger(quota.burst)}`,
    legacy: new Map(),
  }
}

const REMAINING = 1
const RESET = 2

function writeLegacy(
  { name, quota }: LimitVerdict,
  tier: string | null,
  hidesPolicy: boolean,
  hidesTier: boolean,
): LegacyText {
  const fields: HeaderField[] = [
    ['X-RateLimit-Limit', String(quota.limit)],
    ['X-RateLimit-Remaining', ''],
    ['X-RateLimit-Reset', ''],
    ['X-RateLimit-Window', String(windowSeconds(quota))],
  ]
  if (!hidesPolicy) fields.push(['X-RateLimit-Policy', printable(policyOf(name))])
  if (tier !== null && !hidesTier) fields.push(['X-RateLimit-Tier', printable(tier)])
  if (quota.burst !== null) fields.push(['X-RateLimit-Burst', String(quota.burst)])
  fields.push(['X-RateLimit-Cost', '1'])
  // Every response gets these very fields.
  for (const field of fields) Object.freeze(field)
  return { hidesPolicy, hidesTier, fields }
}

/**
 * Returns the `X-RateLimit-*` family, about the binding limit. With a burst, Limit and Burst are the two numbers of
 * the policy, Remaining is what can be used now (so it may be above Limit) and Reset is when all of it is back.
 * Reset is a Unix time, unlike in any IETF draft.
 */
function legacyHeaders(
  decision: Decision,
  binding: LimitVerdict,
  hide: readonly HideableName[],
): HeaderField[] {
  const { tier, cost } = decision
  const hidesPolicy = hide.includes('policy')
  const hidesTier = hide.includes('tier')
  const { legacy } = textOf(binding)
  let text = legacy.get(tier)
  if (text?.hidesPolicy !== hidesPolicy || text.hidesTier !== hidesTier) {
    text = writeLegacy(binding, tier, hidesPolicy, hidesTier)
    legacy.set(tier, text)
  }
  const headers = text.fields.slice()
  headers[REMAINING] = ['X-RateLimit-Remaining', String(binding.remaining)]
  headers[RESET] = ['X-RateLimit-Reset', String(toSeconds(decision.resetAt))]
  if (cost !== 1) headers[headers.length - 1] = ['X-RateLimit-Cost', String(cost)]
  return headers
}

/**
 * Returns `RateLimit-Policy` and `RateLimit` as draft-ietf-httpapi-ratelimit-headers-11 defines them: every limit of the
 * decision as a policy, and what is left of the binding one.
 */
function draft11Headers(
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
  let policies = ''
  for (const [index, verdict] of verdicts.entries()) {
    const { name, item } = textOf(verdict)
    if (index > 0) policies += ', '
    policies += isHidden ? `${fieldString(limitNumber(index))}${item.slice(name.length)}` : item
  }
  return policies
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

// The formats of earlier drafts that proxies and clients still use. Their policies have no names, and their reset
// is a delay: until everything is back or, after a denial, until Retry-After, as they require.

/** The form that Envoy and Limitador send: the policies are part of the limit. */
function draft03Headers(decision: Decision, binding: LimitVerdict): HeaderField[] {
  const { limit, remaining, reset } = numbers(decision, binding)
  return [
    ['X-RateLimit-Limit', `${limit}, ${policies(decision, binding)}`],
    ['X-RateLimit-Remaining', remaining],
    ['X-RateLimit-Reset', reset],
  ]
}

/** One header per number. */
function draft06Headers(decision: Decision, binding: LimitVerdict): HeaderField[] {
  const { limit, remaining, reset } = numbers(decision, binding)
  return [
    ['RateLimit-Policy', policies(decision, binding)],
    ['RateLimit-Limit', limit],
    ['RateLimit-Remaining', remaining],
    ['RateLimit-Reset', reset],
  ]
}

/** All numbers in one dictionary. */
function draft07Headers(decision: Decision, binding: LimitVerdict): HeaderField[] {
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
