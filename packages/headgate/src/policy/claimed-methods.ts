/**
 * Some servers treat a request as having another method if a header or the query says so. We cannot know which of
 * several claims a server would believe, so the request is held to the rules of all of them.
 */
import { percentDecoded } from '../subject/percent-decoding.js'
import type { CanonicalFacts, RequestFacts } from './request-facts.js'

const HEADERS = ['x-http-method-override', 'x-http-method', 'x-method-override']
/** `_method`, and the lists that parsers of nested queries read from `_method[]` and `_method[0]`. */
const QUERY_NAME = /^_method(?:\[[^\]]*\])*$/
/** Characters that start or continue a query; some servers start it at a semicolon. */
const QUERY_SEPARATORS = /[?&;#]/

/**
 * Returns the methods a request claims to have, in upper case, each once. A header may contain a list and may be
 * sent several times: pass all its values. A form's `_method` is in the body, which is not read.
 */
export function claimedMethods(
  header: (name: string) => string | readonly string[] | null | undefined,
  target: string,
): readonly string[] {
  let claims: Set<string> | null = null
  for (const name of HEADERS) {
    const value = header(name)
    if (value === null || value === undefined || value.length === 0) continue
    claims ??= new Set()
    for (const claim of String(value).split(',')) addClaim(claims, claim)
  }
  if (!target.includes('?') && !target.includes(';')) return listOf(claims)
  for (const part of target.split(QUERY_SEPARATORS).slice(1)) {
    const [name = '', value = ''] = splitOnce(part)
    if (!QUERY_NAME.test(decode(name))) continue
    claims ??= new Set()
    addClaim(claims, decode(value))
  }
  return listOf(claims)
}

const NO_CLAIMS: readonly string[] = []

function listOf(claims: ReadonlySet<string> | null): readonly string[] {
  return claims === null ? NO_CLAIMS : [...claims]
}

function addClaim(claims: Set<string>, claim: string): void {
  const method = claim.trim().toUpperCase()
  if (method !== '') claims.add(method)
}

function splitOnce(part: string): readonly string[] {
  const equals = part.indexOf('=')
  return equals < 0 ? [part] : [part.slice(0, equals), part.slice(equals + 1)]
}

function decode(text: string): string {
  return percentDecoded(text.replaceAll('+', ' ')) ?? text
}

/** Returns the method a request was sent with, or null if unknown, followed by those it claims. */
export function methodsOf({ method, claimedMethods = [] }: RequestFacts): CanonicalFacts['methods'] {
  const sent = method?.toUpperCase() ?? null
  if (claimedMethods.length === 0) return [sent]
  return [...new Set([sent, ...claimedMethods.map(claimed => claimed.toUpperCase())])]
}
