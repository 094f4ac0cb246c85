import { describeValue } from '../describe-value.js'
import type { Keys } from '../shape/maps.js'
import { choice, text } from '../shape/scalars.js'

/** Characters of a path that need no escaping: no blank, no query, and nothing that starts a regular expression. */
const LETTER = "[\\w.~!$&'+,=@%:-]"
/** `.` and `..`, encoded or not, never reach a rule, because paths are matched in canonical form. */
const LITERAL = `(?!(?:\\.|%2[eE]){1,2}(?:/|$))(?!:)${LETTER}+`
const PARAMETER = ':[A-Za-z_]\\w{0,31}'
const SEGMENT = `(?:${LITERAL}|${PARAMETER})`
/** Deeper than any API needs; a lookup takes one step per segment. */
const AT_MOST_64 = '(?!(?:/[^/]+){65})'
const PATTERN = new RegExp(`^${AT_MOST_64}/(?:(?:${SEGMENT}/)*(?:${SEGMENT}/?|\\*))?$`)
const PREFIX = new RegExp(`^${AT_MOST_64}(?:/${LITERAL})+/?$`)
const METHODS = [
  ...(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'QUERY', 'TRACE'] as const),
  ...(['PROPFIND', 'PROPPATCH', 'MKCOL', 'COPY', 'MOVE', 'LOCK', 'UNLOCK'] as const),
  ...(['SEARCH', 'REPORT', 'PURGE'] as const),
]

/** The methods that Node accepts and that carry requests. A rule for any other would never match. */
export const method = choice(METHODS, 'a method in upper case, such as GET or POST')

/** Reads the path pattern of a rule, which is stored as written. */
export const pathPattern = text<`/${string}`>(
  'a path such as /users/:id/posts or /files/*, without query and regular expressions',
  PATTERN,
)

/** Reads a prefix of paths that are not limited. The root is rejected, because it would cover all of them. */
export const pathPrefix = text('the beginning of paths, such as /assets', PREFIX)

const COST_KEY = new RegExp(`^(?:(?:${METHODS.join('|')}) )?${PATTERN.source.slice(1)}`)
const COST_KEY_WORDS = 'a path, or a method and a path, such as POST /orders/:id'

/** Validates the keys of `costs`. */
export const costKeys: Keys = {
  schema: { pattern: COST_KEY.source },
  objectionTo: key => (COST_KEY.test(key) ? null : { expected: COST_KEY_WORDS, got: describeValue(key) }),
}

/** Splits a key of `costs` into method and path. */
export function parseCostKey(key: string): { readonly method: string | null; readonly path: string } {
  const space = key.indexOf(' ')
  return space < 0 ? { method: null, path: key } : { method: key.slice(0, space), path: key.slice(space + 1) }
}
