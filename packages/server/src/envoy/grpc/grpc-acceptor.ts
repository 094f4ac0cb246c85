/**
 * Accepts the connections of the rate limit service. grpc-js has no bound on how many there are and none on how long one may say
 * nothing, so it is handed connections that are within bounds.
 */
import { createServer, type Server, type Socket } from 'node:net'
import { limitedAddress } from 'headgate'
import { countInFlight } from '../../http/count-in-flight.js'

export interface AcceptorBounds {
  /** Connections of one address, or IPv6 /64; further ones are closed at once. */
  readonly maxClientConnections: number
  /** How long a connection may take to say its first word. */
  readonly firstBytesWithinMs: number
}

export interface Acceptor {
  /** Not yet listening. */
  readonly server: Server
  /** Accepts nobody any more, and lets those go who have said nothing. */
  close(): void
  /** Cuts off whoever is still connected. */
  destroy(): void
}

/** Far more than an Envoy has threads, and so connections. */
export const DEFAULT_ACCEPTOR_BOUNDS: AcceptorBounds = {
  maxClientConnections: 1_024,
  firstBytesWithinMs: 10_000,
}

export function createAcceptor(bounds: AcceptorBounds, accept: (socket: Socket) => void): Acceptor {
  const sockets = new Set<Socket>()
  const clients = countInFlight(bounds.maxClientConnections)
  const server = createServer({ noDelay: true }, socket => {
    const leave = clients.enter(`${limitedAddress(socket.remoteAddress)}`)
    // Whoever resets a connection is not told what became of it.
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
