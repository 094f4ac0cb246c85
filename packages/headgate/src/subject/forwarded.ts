/**
 * Parses `Forwarded` (RFC 7239): one element per proxy, such as `for="[2001:db8::9]:4711";proto=https`. An
 * element that is not entirely well-formed is ignored, because the client chooses the host name in it, which
 * must not pass for another `for`.
 */

const PAIR = /\s*([\w!#$%&'*+.^`|~-]+)=(?:([^\s";,]+)|"((?:[^"\\]|\\.)*)")\s*(;|$)/y

/**
 * Returns the node that an element names in its `for`, spelt as in `X-Forwarded-For`; null if it names none.
 */
export function forwardedFor(element: string): string | null {
  PAIR.lastIndex = 0
  let node: string | null = null
  while (PAIR.lastIndex < element.length) {
    const pair = PAIR.exec(element)
    if (pair === null) return null
    const [, name = '', plain, quoted] = pair
    if (name.toLowerCase() !== 'for') continue
    if (node !== null) return null
    node = plain ?? (quoted as string)
  }
  return node
}
