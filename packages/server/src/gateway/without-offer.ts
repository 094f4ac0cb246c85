import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { headerTokens, plainName } from '../http/raw-headers.js'
import { hasBody } from './end-to-end-headers.js'

/**
 * Serves a request that offers another protocol as what it is otherwise, as RFC 9110 (7.8) lets a server do. node:http
 * gives up a connection on which it met an offer, so the request is put before it again, written anew: what
 * `Connection` does not name is no offer. The gateway closes the connection after it, since bytes of the other protocol
 * may follow.
 */
export function withoutOffer(
  server: Server,
  { req, socket, head }: { readonly req: IncomingMessage; readonly socket: Socket; readonly head: Buffer },
): void {
  const { rawHeaders } = req
  const lines = [`${req.method} ${req.url} HTTP/${req.httpVersion}`]
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const name = rawHeaders[index] as string
    if (plainName(name) !== 'connection') lines.push(`${name}: ${rawHeaders[index + 1]}`)
  }
  const named = headerTokens(req, 'connection').filter(token => token !== 'upgrade')
  if (named.length > 0) lines.push(`Connection: ${named.join(', ')}`)
  const text = Buffer.from(`${lines.join('\r\n')}\r\n\r\n`, 'latin1')
  server.emit('connection', socket)
  // Bytes behind a request without a body are no part of it.
  socket.unshift(hasBody(req) ? Buffer.concat([text, head]) : text)
  socket.resume()
}
