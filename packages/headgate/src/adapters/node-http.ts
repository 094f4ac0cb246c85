import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import type { HeaderField } from '../decision/headers.js'
import { isPromise } from '../subject/sources.js'
import { createEnforce, type Framework } from './enforce.js'
import { applyOutcome, drain, type LimitedMessage, NodeRequest } from './node.js'
import type { AnyOptions, RateLimitOptions } from './options.js'
import { endOnClose } from './response-end.js'

export type NodeHttpOptions<PolicyName extends string, TierName extends string> = RateLimitOptions<
  IncomingMessage,
  PolicyName,
  TierName
>

type RequestListener = (req: LimitedMessage, res: ServerResponse) => void
type UpgradeListener = (req: IncomingMessage, socket: Duplex, head: Buffer) => void

/** Limits a `request` listener; with `upgrade`, a listener of that event, which bypasses the other. */
export interface NodeLimit {
  (listener: RequestListener): RequestListener
  upgrade(listener: UpgradeListener): UpgradeListener
}

const framework: Framework<IncomingMessage> = {
  knowsPeer: true,
  read: req => new NodeRequest(req),
  origin: req => req,
}

/**
 * Limits a server of `node:http`. A denied request is answered before the listener runs.
 *
 * @example
 * const limited = rateLimit({ limiter, policy: 'api' })
 * createServer(limited((req, res) => res.end('hello')))
 */
export function rateLimit<PolicyName extends string, TierName extends string>(
  options: NodeHttpOptions<PolicyName, TierName>,
): NodeLimit {
  const enforce = createEnforce(options as AnyOptions<IncomingMessage>, framework)
  const limited = (listener: RequestListener): RequestListener => {
    return (req, res) => applyOutcome(enforce(req), req, res, () => listener(req, res))
  }
  const upgrade = (listener: UpgradeListener): UpgradeListener => {
    return (req, socket, head) => {
      const applyToUpgrade = (outcome: Awaited<ReturnType<typeof enforce>>) => {
        if (!outcome.allowed) return endSocket(socket, outcome)
        endOnClose(outcome.ended, socket)
        listener(req, socket, head)
      }
      const outcome = enforce(req)
      if (!isPromise(outcome)) {
        applyToUpgrade(outcome)
        return
      }
      // node:http has let go of the socket, so an unhandled error while we wait would end the process.
      const onError = () => void socket.destroy()
      socket.on('error', onError)
      outcome.then(known => {
        socket.off('error', onError)
        if (!socket.destroyed) applyToUpgrade(known)
        else if (known.allowed) known.ended?.(null)
      })
    }
  }
  return Object.assign(limited, { upgrade })
}

/**
 * Answers on a socket that `node:http` has handed over, and closes it whether or not the client does: there is no
 * response object, and nobody else would.
 */
export function endSocket(
  socket: Duplex & { destroySoon?(): void },
  answer: { readonly status: number; readonly headers: readonly HeaderField[]; readonly body: string },
): void {
  const { status, headers, body } = answer
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.on('error', () => socket.destroy())
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  drain(socket, () => (socket.destroySoon ? socket.destroySoon() : socket.destroy()))
}
