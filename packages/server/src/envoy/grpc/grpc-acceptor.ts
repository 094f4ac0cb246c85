/**
 * Accepts the connections of the rate limit service, within bounds of their number and of how long one may be silent.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { limitedAddress } from 'headgate/identify'
import { countInFlight } from '../../http/count-in-flight.js'

export interface AcceptorBounds {
  /** Connections per address, or per IPv6 /64; further ones are closed at once. */
  readonly maxClientConnections: number
  /** How long a connection may take to send its first byte. */
  readonly firstBytesWithinMs: number
}

export interface Acceptor {
  /** Not yet listening. */
  readonly server: Server
  /** Accepts nobody any more, and closes silent connections. */
  close(): void
  /** Cuts off everybody who is still connected. */
  destroy(): void
}

/** Far more than an Envoy has threads, and thus connections. */
export const DEFAULT_ACCEPTOR_BOUNDS: AcceptorBounds = {
  maxClientConnections: 1_024,
  firstBytesWithinMs: 10_000,
}

export function createAcceptor(bounds: AcceptorBounds, accept: (socket: Socket) => void): Acceptor {
  const sockets = new Set<Socket>()
  const clients = countInFlight(bounds.maxClientConnections)
  const server = createServer({ noDelay: true }, socket => {
    const leave = clients.enter(`${limitedAddress(socket.remoteAddress)}`)
    // A client that resets its connection gets no answer.
    socket.on('error', () => socket.destroy())
    if (leave === null) return void socket.destroy()
    sockets.add(socket)
    const silence = setTimeout(() => {
      if (socket.bytesRead === 0) socket.destroy()
    }, bounds.firstBytesWithinMs)
    socket.once('close', () => {
      clearTimeout(silence)
      sockets.delete(socket)
      leave()
    })
    accept(socket)
  })
  return {
    server,
    close() {
      server.close()
      for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
    },
    destroy() {
      for (const socket of sockets) socket.destroy()
    },
  }
}
