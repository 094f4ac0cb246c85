import type { Report } from './config-problem.js'
import { describeValue } from './describe-value.js'

/** The one place the gateway connects to. */
export interface Upstream {
  readonly hostname: string
  readonly port: number
  /** `host:port` as the `Host` header has it. */
  readonly authority: string
}

const EXPECTED = 'expected http://host:port without path, query or credentials'

/** An upstream from its URL, or null after saying what is wrong with it. */
export function parseUpstream(value: unknown, report: Report): Upstream | null {
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null
  const isOrigin = url !== null && url.protocol === 'http:' && `${url.origin}/` === url.href
  if (!isOrigin || url.hostname === '' || url.port === '0') {
    report(['upstream'], `${EXPECTED}; got ${describeValue(value)}`)
    return null
  }
  return {
    // Brackets belong to the URL, not to the address.
    hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? 80 : Number(url.port),
    authority: url.host,
  }
}
