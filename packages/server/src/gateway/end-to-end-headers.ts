/**
 * Which headers cross the gateway. What belongs to one connection stays on it, both ways; so does every header that
 * `Connection` names. What we say about the client is said by us alone and added last, so that no request can
 * take it away or forge it.
 */
import type { IncomingMessage } from 'node:http'
import type { HeaderField } from 'headgate'
import { headerPairs, headerTokens, headerValues } from '../http/raw-headers.js'

const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]
/** Ours to say, or already done by us: `Expect` is answered here. */
const REPLACED = ['host', 'content-length', 'expect', 'forwarded', 'x-real-ip']
const FORWARDED_PREFIX = 'x-forwarded-'
const METHODS_WITHOUT_BODY = ['GET', 'HEAD', 'DELETE', 'OPTIONS', 'TRACE']

/** The headers a request goes to the upstream with, as a flat list of names and values. */
export function requestHeaders(req: IncomingMessage, authority: string, forwardedFor: string): string[] {
  const dropped = droppedNames(req)
  const kept = headerPairs(req).filter(([name]) => {
    // Servers that hand headers on as variables make - and _ the same.
    const plain = name.toLowerCase().replaceAll('_', '-')
    return (
      !dropped.has(name.toLowerCase()) && !REPLACED.includes(plain) && !plain.startsWith(FORWARDED_PREFIX)
    )
  })
  return [
    ['Host', authority],
    ...kept,
    ...framing(req),
    ['X-Forwarded-For', forwardedFor],
    ['X-Forwarded-Proto', 'http'],
    ['X-Forwarded-Host', headerValues(req, 'host')[0] ?? ''],
  ].flat()
}

/** The headers an upstream's response goes to the client with. Ours take the place of its own of the same name. */
export function responseHeaders(upstream: IncomingMessage, ours: readonly HeaderField[]): string[] {
  const dropped = droppedNames(upstream)
  for (const [name] of ours) dropped.add(name.toLowerCase())
  const kept = headerPairs(upstream).filter(([name]) => !dropped.has(name.toLowerCase()))
  return [...kept, ...ours].flat()
}

/** Whether the request announces a body, by the two headers the parser has found to be sound. */
export function hasBody(req: IncomingMessage): boolean {
  if (headerValues(req, 'transfer-encoding').length > 0) return true
  return Number(headerValues(req, 'content-length')[0] ?? 0) > 0
}

function droppedNames(message: IncomingMessage): Set<string> {
  return new Set([...HOP_BY_HOP, ...headerTokens(message, 'connection')])
}

/** The body's length is told in the way it came in, whatever the method; the framing itself is written anew. */
function framing(req: IncomingMessage): HeaderField[] {
  if (headerValues(req, 'transfer-encoding').length > 0) return [['Transfer-Encoding', 'chunked']]
  const length = headerValues(req, 'content-length')[0]
  if (length !== undefined) return [['Content-Length', length]]
  return METHODS_WITHOUT_BODY.includes(req.method ?? '') ? [] : [['Content-Length', '0']]
}
