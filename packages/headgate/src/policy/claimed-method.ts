/**
 * Some servers take a request for another method than it came with, if a header or the query says so. Whether the one
 * behind does cannot be known here, so a request that claims to be another is held to the rules of both.
 */
const HEADERS = ['x-http-method-override', 'x-http-method', 'x-method-override']
const QUERY_NAME = '_method'

/** The method a request claims to be, or undefined. A form's `_method` is in the body, which is not read. */
export function claimedMethod(
  header: (name: string) => string | null | undefined,
  target: string,
): string | undefined {
  for (const name of HEADERS) {
    const claimed = header(name)?.trim()
    if (claimed) return claimed.toUpperCase()
  }
  const query = target.indexOf('?')
  const claimed = query < 0 ? null : new URLSearchParams(target.slice(query + 1)).get(QUERY_NAME)
  return claimed ? claimed.toUpperCase() : undefined
}
