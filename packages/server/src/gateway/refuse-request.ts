/**
 * What the gateway does not let near the upstream: requests that two servers could read in two ways, and requests to
 * be something other than a gateway. Node's strict parser has already refused what is not HTTP at all.
 */
import type { IncomingMessage } from 'node:http'
import type { Refusal } from '../http/problem.js'
import { headerTokens, headerValues } from '../http/raw-headers.js'

// A name or an address in brackets, and a port. No user, no path, nothing a URL could hide in.
const HOST = /^(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

/** Why a request is refused, or null when it may be looked at further. */
export function refuseRequest(req: IncomingMessage): Refusal | null {
  return refuseTarget(req) ?? refuseHost(req) ?? refuseFraming(req) ?? refuseUpgrade(req)
}

/** Only origin-form: an absolute URL could name another server than the one that is limited. */
function refuseTarget({ url = '' }: IncomingMessage): Refusal | null {
  if (url.startsWith('/')) return null
  return { status: 400, detail: 'request target: expected a path that begins with /' }
}

function refuseHost(req: IncomingMessage): Refusal | null {
  const hosts = headerValues(req, 'host')
  if (hosts.length !== 1) return { status: 400, detail: `Host: expected exactly one; got ${hosts.length}` }
  return HOST.test(hosts[0] as string)
    ? null
    : { status: 400, detail: 'Host: expected a name and perhaps a port' }
}

function refuseFraming(req: IncomingMessage): Refusal | null {
  const codings = headerValues(req, 'transfer-encoding')
  if (codings.length === 0) return null
  if (req.httpVersion !== '1.1' || headerValues(req, 'content-length').length > 0) {
    return { status: 400, detail: 'Transfer-Encoding: expected HTTP/1.1 and no Content-Length beside it' }
  }
  if (codings.length === 1 && codings[0]?.toLowerCase() === 'chunked') return null
  return { status: 501, detail: 'Transfer-Encoding: expected chunked and nothing else' }
}

function refuseUpgrade(req: IncomingMessage): Refusal | null {
  if (!headerTokens(req, 'connection').includes('upgrade') || headerValues(req, 'upgrade').length === 0)
    return null
  return { status: 501, detail: 'Upgrade: this gateway speaks HTTP/1.1 only' }
}
