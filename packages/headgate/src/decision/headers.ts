import { type HeadgateError, unexpected } from '../errors/headgate-error.js'
import { HEADER_STYLES, type HeaderStyle } from '../policy/config.js'
import { advertisedLimit, retryAfterSeconds } from './advertised.js'
import type { Decision, LimitVerdict } from './decision.js'
import type { HeaderField } from './header-field.js'
import {
  draft03Headers,
  draft06Headers,
  draft07Headers,
  draft11Headers,
  legacyHeaders,
} from './header-formats.js'

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
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'decision', 'what check resolves to, awaited', decision)
  }
  const { draft = 'draft-11', hide = NOTHING } = options
  const { style = decision.headerStyle ?? (options.draft === undefined ? 'legacy' : 'both') } = options
  refuseHeaderMistakes(style, draft, hide)
  const binding = style === 'none' ? null : advertisedLimit(decision)
  const headers = binding === null || style === 'ietf' ? [] : legacyHeaders(decision, binding, hide)
  if (binding !== null && style !== 'legacy') {
    const draftHeaders = DRAFTS.get(draft) as DraftHeaders
    overrule(headers, draftHeaders(decision, binding, hide))
  }
  const retryAfter = retryAfterSeconds(decision, options.laterByMs)
  if (retryAfter !== null) headers.push(['Retry-After', String(retryAfter)])
  return headers
}

/** Refuses what `decisionHeaders` would, for validation before there is a decision. */
export function refuseHeaderMistakes(
  style: unknown,
  draft: unknown = 'draft-11',
  hide: unknown = NOTHING,
): void {
  if (!DRAFTS.has(draft as string)) throw invalid('draft', [...DRAFTS.keys()], draft)
  if (!STYLES.includes(style as string)) throw invalid('style', STYLES, style)
  if (hide === NOTHING) return
  if (!Array.isArray(hide))
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'hide', 'a list of policy and tier', hide)
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
  return unexpected('ERR_HEADGATE_INVALID_OPTION', field, `one of ${expected.join(', ')}`, got)
}
