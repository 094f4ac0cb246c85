/** One response header; no name occurs twice in a list of them. */
export type HeaderField = [name: string, value: string]

const MAX_INTEGER = 999_999_999_999_999
// Every name a policy can have; one test is much cheaper than two replacements that find nothing.
const PLAIN = /^[\w.-]*$/
const UNPRINTABLE = /[^\x20-\x7e]/g
const ESCAPED = /["\\]/g

/** Formats a non-negative Integer of RFC 9651. A number beyond its 15 digits becomes the largest one. */
export function fieldInteger(value: number): string {
  return String(Math.min(MAX_INTEGER, Math.max(0, value)))
}

/** Formats a String of RFC 9651, in quotes. */
export function fieldString(text: string): string {
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
