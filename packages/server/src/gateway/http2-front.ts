/**
 * HTTP/2 for clients: each stream becomes an HTTP/1.1 request and is handled the same way. A reset stream has been
 * decided and stays charged. nghttp2 ends floods of resets and of continuation frames.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { constants, createServer, type Http2Server, type Http2ServerRequest } from 'node:http2'
import type { Socket } from 'node:net'
import type { Bounds } from '../http/bounds.js'
import { countInFlight } from '../http/count-in-flight.js'
import { problemAnswer } from '../http/problem.js'
import type { OwnAnswers } from './own-answers.js'

type Handler = (req: IncomingMessage, res: ServerResponse) => void

const MAX_STREAMS = 100
const MAX_HEADER_BYTES = 16 * 1024
const MAX_HEADER_PAIRS = 128
/** After this long without activity a session accepts no further streams, and closes when it has none. */
const IDLE_MS = 30_000
const DIFFERENT_HOSTS = problemAnswer({
  status: 400,
  reason: 'host',
  detail: 'Host: expected the same as :authority, or none',
})

/** Builds the server; sessions come through its event `connection`. */
export function createHttp2Front(
  bounds: Bounds,
  clientOf: (socket: Socket) => string | null,
  handler: Handler,
  own: OwnAnswers,
): Http2Server {
  const perClient = countInFlight(bounds.maxClientConnections)
  const server = createServer({
    settings: { maxConcurrentStreams: MAX_STREAMS, maxHeaderListSize: MAX_HEADER_BYTES, enablePush: false },
    maxHeaderListPairs: bounds.maxHeaders === 0 ? MAX_HEADER_PAIRS : bounds.maxHeaders + 4,
    maxSessionInvalidFrames: 100,
    maxSessionRejectedStreams: 100,
  })
  server.on('session', session => {
    const client = clientOf(session.socket as Socket)
    const leave = client === null ? () => {} : perClient.enter(client)
    if (leave === null) {
      own.note('client-connections', null, session.socket as Socket)
      return session.destroy()
    }
    session.once('close', leave)
    session.on('error', () => session.destroy())
    session.setTimeout(IDLE_MS, () => session.close())
  })
  server.on('sessionError', (_error, session) => session.destroy())
  server.on('request', (req, res) => {
    req.stream.on('error', () => {})
    watchStream(req, bounds, own)
    const isSound = writeAsHttp1(req)
    const pair = [req, res] as unknown as [IncomingMessage, ServerResponse]
    if (isSound) handler(...pair)
    else own.send(...pair, DIFFERENT_HOSTS)
  })
  return server
}

/**
 * The request line is in pseudo-headers, and `Host` may be in `:authority`. Returns false if both are present and
 * differ.
 */
function writeAsHttp1(req: Http2ServerRequest): boolean {
  const raw = req.rawHeaders
  const kept: string[] = []
  const hosts: string[] = []
  for (let index = 0; index + 1 < raw.length; index += 2) {
    const [name, value] = [raw[index] as string, raw[index + 1] as string]
    if (name === ':authority' || name.toLowerCase() === 'host') hosts.push(value)
    else if (!name.startsWith(':')) kept.push(name, value)
  }
  const host = hosts[0] ?? ''
  req.headers.host = host
  raw.splice(0, raw.length, ...(hosts.length === 0 ? [] : ['host', host]), ...kept)
  return hosts.every(other => other === host)
}

/** Cuts off a client that neither sends its body nor reads its answer; one that waits for events is not cut off. */
function watchStream({ stream }: Http2ServerRequest, { responseTimeoutMs }: Bounds, own: OwnAnswers): void {
  if (responseTimeoutMs === 0) return
  const check = () => {
    if (stream.destroyed) return
    const hasSentAll = stream.state.state === constants.NGHTTP2_STREAM_STATE_HALF_CLOSED_REMOTE
    // What we have not read yet is not the client's fault: the request may be waiting for its turn.
    const isBodyDue = !hasSentAll && stream.readableLength === 0
    if (stream.writableLength > 0 || isBodyDue) {
      own.note('unread', null, stream.session?.socket as Socket)
      stream.close(constants.NGHTTP2_CANCEL)
    } else stream.setTimeout(responseTimeoutMs, check)
  }
  stream.setTimeout(responseTimeoutMs, check)
}
