import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type ClientAddress, createClientAddress, limitedAddress } from 'headgate/identify'
import type { ChangeTrail } from 'headgate/internal'
import { type BoundConnections, boundConnections } from '../http/bound-connections.js'
import { DEFAULT_BOUNDS } from '../http/bounds.js'
import { type HttpAnswer, problemAnswer, type Rejection } from '../http/problem.js'
import { headerValues } from '../http/raw-headers.js'
import { sendAnswer } from '../http/send-answer.js'
import { throttledLog, type WriteLine } from '../log/write-line.js'
import { createAuthenticate, TOKEN_MISSING } from './authenticate.js'
import { changesEndpoint, createChanges } from './changes.js'
import { API_HEADER, API_VERSION, type Caller, type Endpoint, may, type Role } from './endpoint.js'
import { failureAnswer } from './failure-answer.js'
import { rejectForeign } from './reject-foreign.js'
import { createFindCaller, type Token } from './tokens.js'

export interface AdminServerOptions {
  readonly endpoints: readonly Endpoint[]
  /**
   * The callers that are let in. If empty, everybody who can connect is, so it must listen only on a loopback
   * address.
   */
  readonly tokens: readonly Token[]
  /** Reads them again, because their files may have changed. */
  readonly readTokens?: () => Promise<readonly Token[]>
  /** Names by which it may be called beside addresses, in lower case. */
  readonly names: readonly string[]
  readonly log: WriteLine
  /** Finds the client behind trusted proxies, by the file in force. Default: no proxy is trusted. */
  readonly clientAddress?: () => ClientAddress
  /** Where the changes of all servers are kept; null if there is only this one. */
  readonly trail?: ChangeTrail | null
}

/** The server of the admin port, and its connections. */
export interface AdminServer {
  readonly server: Server
  readonly connections: BoundConnections
}

const FAULT_LINE_EVERY_MS = 60_000
const UNTRUSTING = createClientAddress()
/** A proxy that asks for every request of its own has as many connections as clients at once, all from one address. */
const BOUNDS = { ...DEFAULT_BOUNDS, maxClientConnections: 4_096 }

/**
 * Builds the server of the admin port, not yet listening. It authenticates the caller, checks the role, and
 * answers.
 */
export function createAdminServer(options: AdminServerOptions): AdminServer {
  const { tokens, names, log } = options
  const changes = createChanges(log, options.trail ?? null, Date.now)
  const endpoints = [...options.endpoints, changesEndpoint(changes)]
  const { clientAddress = () => UNTRUSTING } = options
  const findCaller = createFindCaller(tokens, options.readTokens, log)
  const authenticate = createAuthenticate(findCaller, req => addressOf(req, clientAddress()))
  const logFault = throttledLog(log, FAULT_LINE_EVERY_MS)
  const own = { addresses: tokens.length > 0, names }
  const relays = endpoints.filter(({ isRelay }) => isRelay === true).map(({ path }) => path)
  const methodsOf = new Map(endpoints.map(({ path, methods }) => [path, new Map(Object.entries(methods))]))

  async function answer(req: IncomingMessage): Promise<HttpAnswer> {
    const [path = ''] = (req.url ?? '').split('?')
    const isRelay = relays.includes(path)
    const foreign = rejectForeign(req, { ...own, isRelay })
    if (foreign !== null) return problemAnswer(foreign)
    const caller = await authenticate(req, isRelay)
    if (caller !== null && 'status' in caller) return problemAnswer(caller)
    const methods = methodsOf.get(path) ?? methodsOf.get(familyOf(path))
    const method = methods?.get(req.method ?? '')
    if (method?.needs === null) return method.answer(req, caller)
    // A caller without a token learns nothing, not even which paths exist.
    if (caller === null) return problemAnswer(TOKEN_MISSING)
    if (methods === undefined) return problemAnswer(noSuchPath([...methodsOf.keys()]))
    if (method === undefined) return problemAnswer(noSuchMethod([...methods.keys()]))
    if (!may(caller, method.needs)) return problemAnswer(roleMissing(caller, method.needs))
    const reply = await method.answer(req, caller)
    if (reply.change !== undefined) await changes.add({ by: caller.name, what: reply.change })
    return reply
  }

  const server = createServer({ requireHostHeader: false }).on('close', () => changes.close())
  const connections = boundConnections(server, BOUNDS, ({ remoteAddress }) => limitedAddress(remoteAddress))
  const onRequest = connections.bound((req, res) => {
    answer(req)
      .catch(error => failureAnswer(error, line => logFault(line, () => line)))
      .then(({ headers, ...reply }) =>
        sendAnswer(req, res, { ...reply, headers: [...headers, [API_HEADER, API_VERSION]] }),
      )
  })
  return { server: server.on('request', onRequest), connections }
}

/** Returns the address, or the network of an IPv6 one, by which wrong tokens are counted. */
function addressOf(req: IncomingMessage, clientAddress: ClientAddress): string | null {
  const forwarded = clientAddress.readsHeader ? headerValues(req, clientAddress.header) : []
  return limitedAddress(clientAddress(req.socket.remoteAddress, forwarded))
}

/** Returns the endpoint for all paths below one of the API: `/v1/subjects/*`. */
function familyOf(path: string): string {
  return `${path.split('/').slice(0, 3).join('/')}/*`
}

function roleMissing({ name, role }: Caller, needed: Role): Rejection {
  return { status: 403, detail: `token ${name}: expected the role ${needed}; got ${role}` }
}

function noSuchPath(paths: readonly string[]): Rejection {
  return { status: 404, detail: `expected one of ${paths.join(', ')}` }
}

function noSuchMethod(methods: readonly string[]): Rejection {
  const allow = methods.join(', ')
  return { status: 405, detail: `method: expected ${allow}`, headers: [['Allow', allow]] }
}
