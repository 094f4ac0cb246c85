import type { Server } from 'node:http'
import type { Http2Server, ServerHttp2Session } from 'node:http2'
import { Server as NetServer, type Socket } from 'node:net'
import type { BoundConnections } from './bound-connections.js'

/** The listener in front of a server that does not listen itself. */
export interface Front {
  readonly acceptor: NetServer
  readonly http2: Http2Server
}

/** When a server that stops cuts what is still in flight. */
export interface StopBy {
  readonly timeoutMs: number
  /** Cuts it at once. */
  readonly now?: AbortSignal | undefined
}

/**
 * Makes a server able to stop without dropping a request. The returned function stops accepting, lets requests in
 * flight finish, and resolves when every connection is closed. Returns how many were cut with a request in flight because
 * their time was over; to close an idle one costs nobody anything.
 */
export function gracefulClose(
  server: Server,
  connections: Pick<BoundConnections, 'drain' | 'isIdle'>,
  front?: Front,
): (by: StopBy) => Promise<number> {
  // Including sockets that node:http has handed over or given up on, and no longer knows.
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  /** Of every session of HTTP/2, how many requests are in flight. */
  const sessions = new Map<ServerHttp2Session, number>()
  front?.http2.on('session', session => {
    sessions.set(session, 0)
    session.once('close', () => sessions.delete(session))
    session.on('stream', stream => {
      sessions.set(session, (sessions.get(session) ?? 0) + 1)
      stream.once('close', () => {
        const inFlight = sessions.get(session)
        if (inFlight !== undefined) sessions.set(session, inFlight - 1)
      })
    })
  })
  return ({ timeoutMs, now }) =>
    new Promise(resolve => {
      let cut = 0
      const force = () => {
        for (const socket of sockets) {
          if (!connections.isIdle(socket)) cut++
          socket.destroy()
        }
        for (const [session, inFlight] of sessions) {
          if (inFlight > 0) cut++
          session.destroy()
        }
      }
      const timer = setTimeout(force, timeoutMs)
      now?.addEventListener('abort', force)
      // node:http's close would cut idle connections at once, just when a client may be sending on one.
      NetServer.prototype.close.call(front?.acceptor ?? server, () => {
        clearTimeout(timer)
        now?.removeEventListener('abort', force)
        server.close(() => resolve(cut))
      })
      connections.drain()
      for (const session of sessions.keys()) session.close()
      if (now?.aborted) force()
    })
}
