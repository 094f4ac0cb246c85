import type { IncomingMessage, Server } from 'node:http'
import type { Socket } from 'node:net'
import { headerTokens, plainName } from '../http/raw-headers.js'
import { hasBody } from './end-to-end-headers.js'

/**
 * Serves a request that offers another protocol without the offer, as RFC 9110 (7.8) allows. node:http gives up a
 * connection with an offer, so the request is rewritten and fed to it again: what `Connection` does not name is no
 * offer. The gateway closes the connection afterwards, because bytes of the other protocol may follow.
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
  // Bytes after a request without a body are not part of it.
  socket.unshift(hasBody(req) ? Buffer.concat([text, head]) : text)
  socket.resume()
}
