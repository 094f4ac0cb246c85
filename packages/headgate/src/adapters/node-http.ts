import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { isPromise } from '../subject/source.js'
import { createEnforce, type Framework, type Refused } from './enforce.js'
import { NodeRequest } from './node-request.js'
import { drain, settle } from './node-response.js'
import type { AnyOptions, RateLimitOptions } from './options.js'
import { endOnClose } from './response-end.js'

export type NodeHttpOptions<PolicyName extends string, TierName extends string> = RateLimitOptions<
  IncomingMessage,
  PolicyName,
  TierName
>

type RequestListener = (req: IncomingMessage, res: ServerResponse) => void
type UpgradeListener = (req: IncomingMessage, socket: Duplex, head: Buffer) => void

/** Limits a listener of `request`; with `upgrade`, one of that event, which never reaches the other. */
export interface NodeLimit {
  (listener: RequestListener): RequestListener
  upgrade(listener: UpgradeListener): UpgradeListener
}

const framework: Framework<IncomingMessage> = {
  knowsPeer: true,
  read: req => new NodeRequest(req, req.url ?? ''),
  origin: req => req,
}

/**
 * Limits a server of `node:http`. A request that is denied is answered before the listener runs.
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
    return (req, res) => settle(enforce(req), req, res, () => listener(req, res))
  }
  const upgrade = (listener: UpgradeListener): UpgradeListener => {
    return (req, socket, head) => {
      const settleUpgrade = (outcome: Awaited<ReturnType<typeof enforce>>) => {
        if (!outcome.allowed) return refuseUpgrade(socket, outcome)
        endOnClose(outcome.ended, socket)
        listener(req, socket, head)
      }
      const outcome = enforce(req)
      if (!isPromise(outcome)) {
        settleUpgrade(outcome)
        return
      }
      // node:http has let go of the socket: an error that nobody hears while we wait would end the process.
      const onError = () => void socket.destroy()
      socket.on('error', onError)
      outcome.then(known => {
        socket.off('error', onError)
        if (!socket.destroyed) settleUpgrade(known)
        else if (known.allowed) known.ended?.(null)
      })
    }
  }
  return Object.assign(limited, { upgrade })
}

/** There is no response to write to, and nobody but us to close the socket, whether the client does or not. */
function refuseUpgrade(socket: Duplex, { status, headers, body }: Refused): void {
  const text = Buffer.from(body)
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    `Content-Length: ${text.length}`,
    'Connection: close',
  ]
  socket.on('error', () => socket.destroy())
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`)
  drain(socket, () => socket.destroy())
}
