/**
 * Tells the upstream where a request comes from. Entries of trusted proxies are kept and extended; those of anybody
 * else are not passed on.
 */
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { isIPv6 } from 'node:net'
import type { ClientAddress } from 'headgate/identify'
import { headerValues } from '../http/raw-headers.js'
import { HOST } from './reject-request.js'

/** Where a request comes from, as far as it is known. */
export interface Origin {
  /** Addresses from the client to the peer of the connection. */
  readonly path: readonly string[]
  /** Whether the peer is a trusted proxy. */
  readonly isPeerTrusted: boolean
  /** The protocol of the client, to the first trusted proxy or to us. */
  readonly proto: string
  /** The host name the client asked for. */
  readonly host: string
  /** The header that the proxies in front use. */
  readonly header: ClientAddress['header']
}

const PROTO = /^(?:https?|wss?)$/

/** Returns null for a request whose client has already gone. */
export function originOf(req: IncomingMessage, clientAddress: ClientAddress, host: string): Origin | null {
  const peer = req.socket.remoteAddress
  const { header } = clientAddress
  const isPeerTrusted = clientAddress.readsHeader && clientAddress.trusts(peer)
  const forwarded = isPeerTrusted ? headerValues(req, header) : []
  const path = clientAddress.path(peer, forwarded)
  if (path === null) return null
  const own = 'encrypted' in req.socket && req.socket.encrypted ? 'https' : 'http'
  if (!isPeerTrusted) return { path, isPeerTrusted, proto: own, host, header }
  const proto = headerValues(req, 'x-forwarded-proto')
  const given = headerValues(req, 'x-forwarded-host')
  return {
    path,
    isPeerTrusted,
    proto: proto.length === 1 && PROTO.test(proto[0] as string) ? (proto[0] as string) : own,
    host: given.length === 1 && HOST.test(given[0] as string) ? (given[0] as string) : host,
    header,
  }
}

/**
 * Returns alternating names and values. `Forwarded` only if the proxies in front use it: others need not read two
 * headers that say the same.
 */
export function forwardedHeaders({ path, proto, host, header }: Origin): string[] {
  const fields = ['X-Forwarded-For', path.join(', '), 'X-Forwarded-Proto', proto, 'X-Forwarded-Host', host]
  if (header === 'forwarded') fields.push('Forwarded', forwardedList(path, proto, host))
  return fields
}

function forwardedList(path: readonly string[], proto: string, host: string): string {
  const nodes = path.map(address => `for=${isIPv6(address) ? `"[${address}]"` : address}`)
  return [`${nodes[0]};proto=${proto};host="${host}"`, ...nodes.slice(1)].join(', ')
}

const ID = /^[\w.:/+=@-]{1,128}$/

/** Returns the id of a request for the logs of everybody it passes: a trusted proxy's, or a new one. */
export function requestId(req: IncomingMessage, { isPeerTrusted }: Origin): string {
  if (isPeerTrusted) {
    const given = headerValues(req, 'x-request-id')
    if (given.length === 1 && ID.test(given[0] as string)) return given[0] as string
  }
  return randomUUID()
}
