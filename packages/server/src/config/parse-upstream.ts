import { describeValue } from '../wording/describe-value.js'
import type { Report } from './config-problem.js'

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
    // What stands before an @ may be a password.
    const got = typeof value === 'string' && value.includes('@') ? 'one with an @' : describeValue(value)
    report(['upstream'], `${EXPECTED}; got ${got}`)
    return null
  }
  return {
    // Brackets belong to the URL, not to the address.
    hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: url.port === '' ? 80 : Number(url.port),
    authority: url.host,
  }
}
