import type { IncomingMessage } from 'node:http'

/**
 * Headers as they came, one pair each. The parsed `headers` join or drop duplicates, and with them the difference
 * between one `Host` and two.
 */
export function headerPairs({
  rawHeaders,
}: Pick<IncomingMessage, 'rawHeaders'>): [name: string, value: string][] {
  const pairs: [string, string][] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    pairs.push([rawHeaders[index] as string, rawHeaders[index + 1] as string])
  }
  return pairs
}

/** Every value of a header, in order. `name` is in lower case. */
export function headerValues(message: Pick<IncomingMessage, 'rawHeaders'>, name: string): string[] {
  return headerPairs(message).flatMap(([key, value]) => (key.toLowerCase() === name ? [value] : []))
}

/** The members of a comma-separated header, in lower case. */
export function headerTokens(message: Pick<IncomingMessage, 'rawHeaders'>, name: string): string[] {
  return headerValues(message, name)
    .flatMap(value => value.split(','))
    .map(token => token.trim().toLowerCase())
    .filter(token => token !== '')
}
