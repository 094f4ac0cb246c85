import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'
import {
  claimedMethod,
  type Decision,
  decisionHeaders,
  decisionProblem,
  type Gate,
  type HeaderField,
  limitedAddress,
  peerAddress,
} from 'headgate'
import { type Answer, problemAnswer } from '../http/problem.js'
import { headerValues } from '../http/raw-headers.js'
import { sendAnswer } from '../http/send-answer.js'
import { type Log, throttledLog } from '../log/throttled-log.js'
import type { Serving } from '../serving.js'
import { denialWords } from '../wording/quota-words.js'
import { forward, type Route } from './forward.js'
import { refuseRequest } from './refuse-request.js'

export interface GatewayOptions {
  readonly gate: Pick<Gate, 'request' | 'decideFault'>
  /** What applies now. Asked once for a request, which is then served by it to its end. */
  serving(): Serving
  readonly log: Log
  readonly upstreamTimeoutMs?: number
}

/** A gateway that is not yet listening. */
export interface Gateway {
  readonly server: Server
  /** Lets go of the connections kept to the upstream; call it when the server has closed. */
  release(): void
}

const UPSTREAM_TIMEOUT_MS = 30_000
const HEADERS_TIMEOUT_MS = 10_000
/** Node looks for overdue headers only every so often; its own 30 s would be three times too late. */
const OVERDUE_CHECK_MS = 2_000
const DENIAL_LINE_EVERY_MS = 5_000
const FAULT_LINE_EVERY_MS = 60_000

/** Builds a gateway in front of one upstream. A request is decided on before any of its body is read. */
export function createGateway(options: GatewayOptions): Gateway {
  const { gate, serving, log } = options
  const agent = new Agent({ keepAlive: true, scheduling: 'lifo' })
  const logDenial = throttledLog(log, DENIAL_LINE_EVERY_MS)
  const logFault = throttledLog(log, FAULT_LINE_EVERY_MS)
  const route: Omit<Route, 'upstream'> = {
    agent,
    timeoutMs: options.upstreamTimeoutMs ?? UPSTREAM_TIMEOUT_MS,
    onFailure: reason => logDenial('upstream', () => reason),
  }

  /** When the limiter is at fault nothing is known about the client, and the failure mode decides. */
  async function decide(subject: `ip:${string}`, req: IncomingMessage): Promise<Decision> {
    const { method = '', url = '' } = req
    try {
      const claimed = claimedMethod(name => headerValues(req, name)[0], url)
      return await gate.request({ subject, method, path: url, ...(claimed && { claimedMethod: claimed }) })
    } catch (error) {
      const decision = gate.decideFault({ method, path: url })
      const outcome = decision.allowed ? 'requests pass unchecked' : 'requests are refused'
      logFault('limiter', () => `limiter failed, ${outcome}: ${(error as Error).message}`)
      return decision
    }
  }

  async function handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const refusal = refuseRequest(req)
    if (refusal !== null) return sendAnswer(req, res, problemAnswer(refusal))
    const current = serving()
    const peer = peerAddress(req.socket.remoteAddress)
    const client = current.clientAddress(req.socket.remoteAddress, headerValues(req, 'x-forwarded-for'))
    // The client has already gone.
    if (peer === null || client === null) return void req.socket.destroy()
    const address = limitedAddress(client)
    const decision = await decide(`ip:${address}`, req)
    if (res.destroyed) return
    const headers = decisionHeaders(decision)
    if (!decision.allowed) {
      const answer = denialAnswer(decision, headers)
      logDenial(`${address}`, () => denialWords(answer.status, `ip:${address}`, decision))
      return sendAnswer(req, res, answer)
    }
    if (req.headers.expect !== undefined) res.writeContinue()
    const via = peer === client ? peer : `${client}, ${peer}`
    forward({ req, res, forwardedFor: via, headers }, { ...route, upstream: current.upstream })
  }

  const onRequest = (req: IncomingMessage, res: ServerResponse) => {
    handle(req, res).catch(error => {
      logFault('gateway', () => `request failed: ${(error as Error).message}`)
      if (res.headersSent) res.destroy()
      else sendAnswer(req, res, problemAnswer({ status: 500, detail: 'The gateway failed.' }))
    })
  }
  // Host is checked by us, with a better answer. Headers are bounded by their size alone: Node drops what is above
  // a count without a word.
  const server = createServer(
    {
      requireHostHeader: false,
      headersTimeout: HEADERS_TIMEOUT_MS,
      connectionsCheckingInterval: OVERDUE_CHECK_MS,
    },
    onRequest,
  )
  server.maxHeadersCount = 0
  server.on('checkContinue', onRequest)
  server.on('connect', refuseConnect)
  return { server, release: () => agent.destroy() }
}

function denialAnswer(decision: Decision, decided: readonly HeaderField[]): Answer {
  const { status, headers, body } = decisionProblem(decision)
  return { status, headers: [...headers, ...decided], body: `${JSON.stringify(body)}\n` }
}

/** A tunnel would carry requests that nobody counts. */
function refuseConnect(_req: IncomingMessage, socket: Duplex): void {
  const { body } = problemAnswer({ status: 501, detail: 'CONNECT: this gateway makes no tunnels' })
  const head = ['HTTP/1.1 501 Not Implemented', 'Content-Type: application/problem+json', 'Connection: close']
  socket.on('error', () => socket.destroy())
  socket.end(`${[...head, `Content-Length: ${Buffer.byteLength(body)}`].join('\r\n')}\r\n\r\n${body}`)
}
