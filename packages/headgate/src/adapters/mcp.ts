/** Limits the tools of a server of the Model Context Protocol, on the transport its messages come by. */
import { ignoreRejection } from '../errors/ignore-rejection.js'
import { createEnforce, type Framework } from './enforce.js'
import type { AnyOptions, RateLimitOptions, Without } from './options.js'
import type { Ended } from './response-end.js'

/** A call of a tool, and what the transport knows about its caller. */
export interface ToolCall {
  readonly tool: string
  readonly arguments: Readonly<Record<string, unknown>>
  /** Of a verified token. */
  readonly authInfo: { readonly clientId: string; readonly extra?: Record<string, unknown> } | undefined
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
}

/** Without what does not apply: a message has no address, and an error has the form of JSON-RPC. */
export type McpOptions<PolicyName extends string, TierName extends string> = Without<
  RateLimitOptions<ToolCall, PolicyName, TierName>,
  'body' | 'contentType' | 'headers' | 'refundIf' | 'trustedProxies' | 'forwardedHeader'
>

/** What is used of the SDK's `Transport`, whatever its version. */
interface McpTransport {
  // biome-ignore lint/suspicious/noExplicitAny: a message of the SDK
  onmessage?: ((message: any, extra?: any) => void) | undefined
  send(message: never, options?: never): Promise<void>
}

/** The code of the error of a refused call. JSON-RPC leaves its range to servers. */
export const RATE_LIMITED = -32_029

const framework: Framework<ToolCall> = {
  knowsPeer: false,
  read: ({ tool, headers }) => ({
    method: 'POST',
    url: `/tools/${encodeURIComponent(tool)}`,
    route: tool,
    peer: undefined,
    header: name => (name === 'accept' ? undefined : [headers[name] ?? []].flat().join(', ') || undefined),
  }),
  origin: call => call,
}

const byToken = ({ authInfo }: ToolCall) => authInfo && `client:${authInfo.clientId}`

/**
 * Limits calls of tools, per tool and caller: by the client of a verified token, or as `subject` says; all others share a
 * budget. A refused call does not reach the server: it gets a JSON-RPC error whose `data` has `retryAfterMs`.
 *
 * @example
 * await server.connect(limitTools(transport, { limit: 10, window: '1m' }))
 */
export function limitTools<T extends McpTransport, PolicyName extends string, TierName extends string>(
  transport: T,
  options: McpOptions<PolicyName, TierName>,
): T {
  const perTool = {
    ...(!('scope' in options) && { perRoute: true }),
    ...(!('identify' in options) && { subject: byToken }),
  }
  const enforce = createEnforce({ ...perTool, ...options } as object as AnyOptions<ToolCall>, framework)
  const send = transport.send.bind(transport) as (message: object, options?: object) => Promise<void>
  const inFlight = new Map<unknown, Ended>()
  let deliver: McpTransport['onmessage']
  const end = (id: unknown): void => {
    inFlight.get(id)?.(null)
    inFlight.delete(id)
  }
  const receive: McpTransport['onmessage'] = async (message, extra) => {
    const { id, method, params } = message
    if (method === 'notifications/cancelled') end(params?.requestId)
    if (method !== 'tools/call' || id === undefined) return deliver?.(message, extra)
    const { authInfo, requestInfo } = extra ?? {}
    const call = { tool: String(params?.name), arguments: params?.arguments ?? {} }
    const outcome = await enforce({ ...call, authInfo, headers: requestInfo?.headers ?? {} })
    if (!outcome.allowed) {
      const error = { code: RATE_LIMITED, message: outcome.detail, data: JSON.parse(outcome.body) }
      ignoreRejection(send({ jsonrpc: '2.0', id, error }, { relatedRequestId: id }))
      return
    }
    // One whose id is taken lets its permit expire.
    if (outcome.ended !== null && !inFlight.has(id)) inFlight.set(id, outcome.ended)
    deliver?.(message, extra)
  }
  const sendAndEnd = (message: { id?: unknown; method?: string }, options?: object) => {
    if (message.method === undefined) end(message.id)
    return send(message, options)
  }
  // Whoever made the transport goes on using it; only the server sees this one.
  return new Proxy(transport, {
    get(target, name) {
      const value = name === 'send' ? sendAndEnd : Reflect.get(target, name)
      return typeof value === 'function' && name !== 'onmessage' ? value.bind(target) : value
    },
    set(target, name, value) {
      if (name === 'onmessage') deliver = value
      return Reflect.set(target, name, name === 'onmessage' ? receive : value)
    },
  })
}
