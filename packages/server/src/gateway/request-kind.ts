import type { IncomingMessage } from 'node:http'

/** How much of a path tells one kind of request from another. */
const MOST_SEGMENTS = 2
const MOST_LENGTH = 64
/** A segment with digits is more often an id than a name. */
const HAS_DIGIT = /\d/

/**
 * Names the kind of a request, so that the latency of one is not compared with that of another: by its rule, or by its
 * method and the beginning of its path.
 */
export function kindOf({ method, url = '' }: IncomingMessage, rule: string | null): string {
  if (rule !== null) return rule
  const [path = ''] = url.split('?', 1)
  const segments = path.slice(0, MOST_LENGTH).split('/', MOST_SEGMENTS + 1)
  const named = segments.slice(1).map(segment => (HAS_DIGIT.test(segment) ? ':' : segment))
  return `${method} /${named.join('/')}`
}
