/**
 * Requests that the gateway keeps from the upstream: those that two servers could read in two ways, and those that
 * ask it to be something other than a gateway. Node's strict parser has already rejected what is not HTTP at all.
 */
import type { IncomingMessage } from 'node:http'
import { headerTokens, headerValues } from '../http/raw-headers.js'
import type { OwnRejection } from './own-answers.js'
import { isWebSocket } from './websocket.js'

const VERSIONS = ['1.0', '1.1']
// A name or an address in brackets, and a port. No user, no path, nothing that could hide in a URL.
export const HOST = /^(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

/** Returns why a request is rejected, or null. `maxHeaders` 0 means no bound. */
export function rejectRequest(req: IncomingMessage, maxHeaders: number): OwnRejection | null {
  return (
    rejectVersion(req) ??
    rejectCount(req, maxHeaders) ??
    rejectTarget(req) ??
    rejectHost(req) ??
    rejectFraming(req) ??
    rejectExpectation(req) ??
    rejectUpgrade(req)
  )
}

/** Node's parser accepts `HTTP/2.0` on an HTTP/1.1 request line, which no HTTP/1.1 server would. */
function rejectVersion(req: IncomingMessage): OwnRejection | null {
  if (VERSIONS.includes(req.httpVersion) || 'stream' in req) return null
  return { status: 505, reason: 'version', detail: 'HTTP version: expected 1.1 or 1.0' }
}

/** Servers silently drop headers beyond a count of their own; with this bound nothing is dropped. */
function rejectCount({ rawHeaders }: IncomingMessage, maxHeaders: number): OwnRejection | null {
  if (maxHeaders === 0 || rawHeaders.length / 2 <= maxHeaders) return null
  return {
    status: 431,
    reason: 'headers',
    detail: `headers: expected at most ${maxHeaders}; got ${rawHeaders.length / 2}`,
  }
}

/** Only origin-form: an absolute URL could name another server than the limited one. */
function rejectTarget({ url = '' }: IncomingMessage): OwnRejection | null {
  if (url.startsWith('/')) return null
  return { status: 400, reason: 'target', detail: 'request target: expected a path that begins with /' }
}

function rejectHost(req: IncomingMessage): OwnRejection | null {
  const hosts = headerValues(req, 'host')
  if (hosts.length !== 1)
    return { status: 400, reason: 'host', detail: `Host: expected exactly one; got ${hosts.length}` }
  return HOST.test(hosts[0] as string)
    ? null
    : { status: 400, reason: 'host', detail: 'Host: expected a name and perhaps a port' }
}

function rejectFraming(req: IncomingMessage): OwnRejection | null {
  const codings = headerValues(req, 'transfer-encoding')
  if (codings.length === 0) return null
  if (req.httpVersion !== '1.1' || headerValues(req, 'content-length').length > 0) {
    return {
      status: 400,
      reason: 'framing',
      detail: 'Transfer-Encoding: expected HTTP/1.1 and no Content-Length beside it',
    }
  }
  if (codings.length === 1 && codings[0]?.toLowerCase() === 'chunked') return null
  return { status: 501, reason: 'framing', detail: 'Transfer-Encoding: expected chunked and nothing else' }
}

/** HTTP/1.0 has none, so what it says about one is ignored. */
function rejectExpectation(req: IncomingMessage): OwnRejection | null {
  if (req.httpVersion === '1.0' || headerTokens(req, 'expect').every(token => token === '100-continue'))
    return null
  return { status: 417, reason: 'expect', detail: 'Expect: expected 100-continue and nothing else' }
}

/** An offer of HTTP/2 is ignored, as a server may: the request is served as it is. */
export function rejectUpgrade(req: IncomingMessage): OwnRejection | null {
  if (!headerTokens(req, 'connection').includes('upgrade')) return null
  if (headerTokens(req, 'upgrade').every(protocol => protocol === 'h2c')) return null
  if (isWebSocket(req)) return null
  return { status: 501, reason: 'upgrade', detail: 'Upgrade: expected a WebSocket handshake, or none' }
}
