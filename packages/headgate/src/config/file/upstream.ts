import { describeValue } from '../describe-value.js'
import type { Shape } from '../shape/shape.js'

/** The one place the gateway connects to. */
export interface Upstream {
  readonly hostname: string
  readonly port: number
  /** `host:port` as the `Host` header has it. */
  readonly authority: string
}

/** The URL of an upstream. */
export const upstream: Shape<string> = {
  words: 'http://host:port without path, query or credentials',
  schema: { type: 'string', pattern: '^http://[^/?#@\\s]+/?$' },
  read(value, place) {
    if (parseUpstream(value) !== null) return String(value)
    // What stands before an @ may be a password.
    const got = typeof value === 'string' && value.includes('@') ? 'one with an @' : describeValue(value)
    return place.refuse({ expected: upstream.words, got })
  },
}

/** An upstream from its URL, or null if it is none. */
export function parseUpstream(value: unknown): Upstream | null {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null
  const isOrigin = url !== null && url.protocol === 'http:' && `${url.origin}/` === url.href
  if (!isOrigin || url.hostname === '' || url.port === '0') return null
  return {
    // Brackets belong to the URL, not to the address.
    hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? 80 : Number(url.port),
    authority: url.host,
  }
}
