/**
 * WebSocket through the gateway: the handshake is a request like any other, decided and counted; after it, bytes
 * flow both ways. Nothing that comes before the upstream has agreed is passed on, because it may be a request that
 * nobody counts.
 */
import { type IncomingMessage, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { drain } from 'headgate/internal'
import type { Dispatcher } from 'undici'
import { problemAnswer } from '../http/problem.js'
import { headerTokens, headerValues } from '../http/raw-headers.js'
import type { Admitted } from './admit.js'
import { type AnswerHead, requestHeaders, responseHeaders } from './end-to-end-headers.js'
import { explainFailure, type Listeners } from './forward.js'
import type { OwnRejection } from './own-answers.js'
import { rejectAnswer } from './reject-answer.js'

const SWITCHING = 101
const EARLY: OwnRejection = {
  status: 400,
  reason: 'upgrade',
  detail: 'Upgrade: expected nothing before the upgrade is agreed on',
}

/** A client that waits for the upstream's agreement. */
export interface Handshake {
  readonly req: IncomingMessage
  readonly socket: Socket
  /** Bytes that came right after the handshake. */
  readonly head: Buffer
}

/** Passes on an admitted handshake, and then bytes. */
export function openTunnel(
  { req, socket, head }: Handshake,
  admitted: Admitted,
  { onFailure, own }: Pick<Listeners, 'onFailure' | 'own'>,
): void {
  const { pool, headers } = admitted
  let isAgreed = false
  let abort: ((cause?: Error) => void) | null = null
  const onEarly = () => {
    abort?.(new Error('the client did not wait'))
    socket.destroy()
  }
  if (head.length > 0) return void reject(EARLY)
  const server = pool.choose([])
  if (server === null) return void socket.destroy()
  server.inFlight++
  const onClose = () => {
    server.inFlight--
    abort?.(new Error('the client has left'))
  }
  socket.on('data', onEarly).once('close', onClose)
  const host = pool.config.host === 'keep' ? admitted.host : server.upstream.authority

  const handler: Dispatcher.DispatchHandler = {
    onConnect(given) {
      if (socket.destroyed) return given(new Error('the client has left'))
      abort = given
      admitted.permit.sent()
      admitted.tokens?.sent()
    },
    onUpgrade(status, raw, upstream) {
      const answer = { status, reason: STATUS_CODES[status] ?? '', rawHeaders: (raw ?? []).map(String) }
      isAgreed = true
      abort = null
      admitted.permit.answered(status)
      server.health.succeeded()
      socket.off('data', onEarly)
      if (socket.destroyed || !isAgreement(answer)) {
        upstream.destroy()
        if (!socket.destroyed)
          reject({
            status: 502,
            reason: 'upstream-answer',
            detail: 'The upstream agreed to another protocol.',
          })
        return
      }
      socket.pause()
      const fields = [...responseHeaders(answer, headers), 'Connection', 'Upgrade', 'Upgrade', 'websocket']
      socket.write(headOf(SWITCHING, answer.reason, fields))
      join(socket, upstream)
    },
    onHeaders(status, raw, resume, reason) {
      if (status < 200) return true
      const answer = { status, reason, rawHeaders: raw.map(text => text.toString('latin1')) }
      const objection = rejectAnswer(answer)
      if (objection !== null) throw new Error(objection)
      isAgreed = true
      admitted.permit.answered(status)
      socket.on('drain', resume)
      socket.write(headOf(status, reason, [...responseHeaders(answer, headers), 'Connection', 'close']))
      return true
    },
    onData: chunk => socket.write(chunk),
    onComplete() {
      socket.off('data', onEarly).end()
      // A client that does not close would hold its permits for as long as it likes.
      drain(socket, () => socket.destroySoon())
    },
    onError(cause) {
      if (isAgreed || socket.destroyed) return void socket.destroy()
      const { status, reason, what } = explainFailure(cause)
      server.health.failed(performance.now())
      onFailure(`${status}: upstream ${server.upstream.origin} ${what} (${cause.message})`)
      reject({ status, reason, detail: `The upstream ${what}.` })
    },
  }
  const fields = requestHeaders(req, host, admitted)
  server.connections.dispatch(
    { path: req.url as string, method: 'GET', headers: fields, upgrade: 'websocket' },
    handler,
  )

  function reject(rejection: OwnRejection): void {
    socket.off('data', onEarly)
    own.end(socket, problemAnswer({ ...rejection, headers: [...(rejection.headers ?? []), ...headers] }))
  }
}

function isAgreement(answer: AnswerHead): boolean {
  return answer.status === SWITCHING && headerTokens(answer, 'upgrade').join() === 'websocket'
}

function headOf(status: number, reason: string, fields: readonly string[]): Buffer {
  let text = `HTTP/1.1 ${status} ${reason}\r\n`
  for (let index = 0; index + 1 < fields.length; index += 2)
    text += `${fields[index]}: ${fields[index + 1]}\r\n`
  return Buffer.from(`${text}\r\n`, 'latin1')
}

/** Each side ends when the other has, for whatever reason. */
function join(client: Duplex, upstream: Duplex): void {
  for (const [one, other] of [
    [client, upstream],
    [upstream, client],
  ] as const) {
    one.on('error', () => other.destroy()).on('close', () => other.destroy())
    one.pipe(other)
  }
}

/** Whether a request is the handshake of a WebSocket, complete and alone. */
export function isWebSocket(req: IncomingMessage): boolean {
  const protocols = headerTokens(req, 'upgrade')
  return (
    req.method === 'GET' &&
    req.httpVersion === '1.1' &&
    headerTokens(req, 'connection').includes('upgrade') &&
    protocols.length === 1 &&
    protocols[0] === 'websocket' &&
    headerValues(req, 'sec-websocket-key').length === 1 &&
    headerValues(req, 'content-length').length === 0 &&
    headerValues(req, 'transfer-encoding').length === 0
  )
}
