import { HeadgateError, show, unexpected } from '../errors.js'
import { advertisedLimit, retryAfterSeconds } from './advertised.js'
import type { Decision } from './decision.js'
import type { HeaderField } from './header-field.js'
import { draft11Headers } from './ietf-headers.js'
import { legacyHeaders } from './legacy-headers.js'
import type { LimitVerdict } from './limit-verdict.js'
import { draft03Headers, draft06Headers, draft07Headers } from './older-drafts.js'

/** Which family of quota headers a response carries: `X-RateLimit-*`, the IETF draft's, both or none. */
export type HeaderStyle = 'legacy' | 'ietf' | 'both' | 'none'

/** Which edition of the IETF draft is spoken. */
export type HeaderDraft = 'draft-03' | 'draft-06' | 'draft-07' | 'draft-11'

export interface HeaderOptions {
  /** Default: what the policy file says, else `both`. */
  readonly style?: HeaderStyle
  /** Default `draft-11`. */
  readonly draft?: HeaderDraft
}

const STYLES: readonly string[] = ['legacy', 'ietf', 'both', 'none'] satisfies HeaderStyle[]
const DRAFTS: ReadonlyMap<string, (decision: Decision, binding: LimitVerdict) => HeaderField[]> = new Map([
  ['draft-03', draft03Headers],
  ['draft-06', draft06Headers],
  ['draft-07', draft07Headers],
  ['draft-11', draft11Headers],
])

/**
 * The headers a response to this decision carries, allowed or denied. Every value is legal in HTTP.
 * Where no quota is known (a failure mode, an unlimited caller) none is advertised. `Retry-After` belongs to HTTP and
 * to no style: a denial that waiting can end carries it always.
 */
export function decisionHeaders(decision: Decision, options: HeaderOptions = {}): readonly HeaderField[] {
  if (typeof decision?.allowed !== 'boolean') {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'decision', 'what check resolves to, awaited', decision)
  }
  const { style = decision.headerStyle ?? 'both', draft = 'draft-11' } = options
  const draftHeaders = DRAFTS.get(draft)
  if (draftHeaders === undefined) throw invalid('draft', [...DRAFTS.keys()], draft)
  if (!STYLES.includes(style)) throw invalid('style', STYLES, style)
  const binding = style === 'none' ? null : advertisedLimit(decision)
  const headers = binding === null || style === 'ietf' ? [] : legacyHeaders(decision, binding)
  if (binding !== null && style !== 'legacy') overrule(headers, draftHeaders(decision, binding))
  const retryAfter = retryAfterSeconds(decision)
  if (retryAfter !== null) headers.push(['Retry-After', String(retryAfter)])
  return headers
}

/** Draft-03, which must be asked for, takes the place of the legacy headers whose names it shares. */
function overrule(headers: HeaderField[], drafted: readonly HeaderField[]): void {
  for (const field of drafted) {
    let place = 0
    while (place < headers.length && headers[place]?.[0] !== field[0]) place++
    headers[place] = field
  }
}

function invalid(field: string, expected: readonly string[], got: unknown): HeadgateError {
  return new HeadgateError(
    'ERR_HEADGATE_INVALID_OPTION',
    `${field}: expected one of ${expected.join(', ')}; got ${show(got)}`,
  )
}
