import type { Server, ServerResponse } from 'node:http'
import type { Http2Server, ServerHttp2Session } from 'node:http2'
import { Server as NetServer, type Socket } from 'node:net'

/** Time for busy clients to learn from `Connection: close` that this connection ends. */
const NOTICE_MS = 250
const EVERY_MS = 25

/** The listener in front of a server that does not listen itself. */
export interface Front {
  readonly acceptor: NetServer
  readonly http2: Http2Server
}

/**
 * Makes a server able to stop without dropping a request. The returned function stops accepting, lets requests in
 * flight finish, and resolves when every connection is closed, by force after `deadlineMs`.
 */
export function gracefulClose(server: Server, front?: Front): (deadlineMs: number) => Promise<void> {
  // Including sockets that node:http has handed over or given up on, and no longer knows.
  const sockets = new Set<Socket>()
  server.on('connection', socket => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  const sessions = new Set<ServerHttp2Session>()
  front?.http2.on('session', session => {
    sessions.add(session)
    session.once('close', () => sessions.delete(session))
  })
  return deadlineMs =>
    new Promise(resolve => {
      for (const session of sessions) session.close()
      const endAfter = (_req: unknown, res: ServerResponse) => {
        res.shouldKeepAlive = false
      }
      server.prependListener('request', endAfter).prependListener('checkContinue', endAfter)
      const notice = setTimeout(() => {
        // Node counts a connection that never sent anything as busy until its headers are overdue.
        for (const socket of sockets) if (socket.bytesRead === 0) socket.destroy()
        sweep = setInterval(() => server.closeIdleConnections(), EVERY_MS)
      }, NOTICE_MS)
      let sweep: NodeJS.Timeout | undefined
      const force = setTimeout(() => {
        for (const socket of sockets) socket.destroy()
        for (const session of sessions) session.destroy()
      }, deadlineMs)
      // node:http's close would cut idle connections at once, just when a client may be sending on one.
      NetServer.prototype.close.call(front?.acceptor ?? server, () => {
        for (const timer of [notice, sweep, force]) clearTimeout(timer)
        server.close(() => resolve())
      })
    })
}
