/** One response header; no name occurs twice in a list of them. */
export type HeaderField = [name: string, value: string]

const MAX_INTEGER = 999_999_999_999_999
// Every name a policy can be given; one test is much cheaper than two replacements that find nothing.
const PLAIN = /^[\w.-]*$/
const UNPRINTABLE = /[^\x20-\x7e]/g
const ESCAPED = /["\\]/g

/** A non-negative Integer of RFC 9651. What is beyond its 15 digits is told as the largest there is. */
export function fieldInteger(value: number): string {
  return String(Math.min(MAX_INTEGER, Math.max(0, value)))
}

/** A String of RFC 9651, in quotes. */
export function fieldString(text: string): string {
  if (PLAIN.test(text)) return `"${text}"`
  return `"${printable(text).replace(ESCAPED, '\\$&')}"`
}

/**
 * Printable ASCII, with `?` for all else. Names are checked when a policy is made; one that came by another way must
 * still not break the response (Node throws for it) or, with a line break, write a header of its own.
 */
export function printable(text: string): string {
  return PLAIN.test(text) ? text : text.replace(UNPRINTABLE, '?')
}
