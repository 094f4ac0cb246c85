/**
 * `Forwarded` (RFC 7239): one element for each proxy, such as `for="[2001:db8::9]:4711";proto=https`. An element that
 * is not wholly well-formed says nothing: a host name in it is the client's text, and must not pass for another `for`.
 */

const PAIR = /\s*([\w!#$%&'*+.^`|~-]+)=(?:([^\s";,]+)|"((?:[^"\\]|\\.)*)")\s*(;|$)/y

/** The address that an element names, in the spelling of `X-Forwarded-For`; null where it names none. */
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
