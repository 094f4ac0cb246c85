/**
 * Picks the headers that cross the gateway. Hop-by-hop headers stay, in both directions, and so does every header
 * that `Connection` names. Only we describe the client, and first: a server that counts headers drops the last
 * ones.
 */
import type { IncomingMessage } from 'node:http'
import { Http2ServerRequest } from 'node:http2'
import type { HeaderField } from 'headgate/internal'
import { headerTokens, plainName } from '../http/raw-headers.js'
import { ADDRESS_CLAIMS, TARGET_CLAIMS } from './claimed-headers.js'

const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'transfer-encoding',
  'upgrade',
  'http2-settings',
]
/** Set by us, or already handled by us: `Expect` is answered here, and trailers of a request end here. */
const REPLACED = ['host', 'content-length', 'expect', 'forwarded', 'x-real-ip', 'x-request-id', 'trailer']
const FORWARDED_PREFIX = 'x-forwarded-'
const NO_CONTENT = 204

const NOT_OF_CLIENTS = new Set([...HOP_BY_HOP, ...REPLACED, ...TARGET_CLAIMS])
const NOT_OF_STRANGERS = new Set([...NOT_OF_CLIENTS, ...ADDRESS_CLAIMS])
const NOT_OF_UPSTREAMS = new Set(HOP_BY_HOP)

/** Headers that go before the client's own. */
export interface Introduction {
  /** Alternating names and values. */
  readonly introduction: readonly string[]
  /** Whether the connection's peer is a trusted proxy. */
  readonly isPeerTrusted: boolean
}

/** Returns the headers a request goes to the upstream with, as alternating names and values, ours first. */
export function requestHeaders(
  req: IncomingMessage,
  host: string,
  { introduction, isPeerTrusted }: Introduction,
): string[] {
  const headers = ['Host', host, ...introduction]
  // The body's length is announced the way it came; without it the client writes chunks.
  const length = req.headers['content-length']
  if (length !== undefined && hasBody(req)) headers.push('Content-Length', length)
  const dropped = isPeerTrusted ? NOT_OF_CLIENTS : NOT_OF_STRANGERS
  const named = namedByConnection(req)
  const { rawHeaders } = req
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string
    const plain = plainName(name)
    if (dropped.has(plain) || plain.startsWith(FORWARDED_PREFIX) || named?.includes(plain)) continue
    // HTTP/2's pseudo-headers are the request line.
    if (name.startsWith(':')) continue
    headers.push(name, rawHeaders[index + 1] as string)
  }
  return headers
}

/** An upstream's answer, before its body. */
export interface AnswerHead {
  readonly status: number
  readonly reason: string
  /** Alternating names and values. */
  readonly rawHeaders: string[]
}

/** Returns the headers an upstream's answer goes to the client with. Ours replace those of the same name. */
export function responseHeaders(answer: AnswerHead, ours: readonly HeaderField[]): string[] {
  const { rawHeaders, status } = answer
  const headers: string[] = []
  for (const [name, value] of ours) headers.push(name, value)
  const named = namedByConnection(answer)
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string
    const plain = plainName(name)
    if (NOT_OF_UPSTREAMS.has(plain) || named?.includes(plain)) continue
    // A client that believes it would wait for a body that must not come (RFC 9110, 8.6).
    if (status === NO_CONTENT && plain === 'content-length') continue
    if (isAmong(ours, plain)) continue
    headers.push(name, rawHeaders[index + 1] as string)
  }
  return headers
}

/** Whether the request announces a body, by the two headers that the parser has validated. */
export function hasBody(req: IncomingMessage): boolean {
  const { headers } = req
  // HTTP/2 need not announce its length.
  if (req instanceof (Http2ServerRequest as unknown as typeof IncomingMessage)) {
    return !(req as unknown as Http2ServerRequest).stream.endAfterHeaders
  }
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0
}

function namedByConnection(message: Pick<IncomingMessage, 'rawHeaders'>): string[] | null {
  const tokens = headerTokens(message, 'connection')
  return tokens.length === 0 ? null : tokens.map(plainName)
}

function isAmong(fields: readonly HeaderField[], plain: string): boolean {
  for (const [name] of fields) if (name.length === plain.length && name.toLowerCase() === plain) return true
  return false
}
