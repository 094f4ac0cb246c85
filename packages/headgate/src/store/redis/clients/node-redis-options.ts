import { CONNECT_TIMEOUT_MS, reconnectDelayMs, silentDelayMs } from '../reconnect.js'
import type { NodeRedisGiven } from './node-redis-shape.js'

interface Duplicable {
  duplicate(overrides?: object): unknown
}

const QUEUE_LENGTH = 100_000

/** A node that does not come back is looked for elsewhere this soon; the client's default is 5 s. */
const REDISCOVER_AFTER_MS = 500

/**
 * The client's own timeout is off: it makes an abort signal for every command and does not cover commands already
 * sent; the store's deadline covers both. Setting the options anew also drops a mapping of types the caller may use.
 */
export const COMMAND_OPTIONS = { timeout: 0 } as const

const SOCKET_OPTIONS = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  reconnectStrategy: (retries: number, cause: Error) =>
    /timeout/i.test(cause.message) ? silentDelayMs() : reconnectDelayMs(retries + 1),
} as const

/** Fail at once while disconnected instead of queueing without bound; keep nothing that changes keys or replies. */
const CLIENT_OPTIONS = {
  disableOfflineQueue: true,
  commandsQueueMaxLength: QUEUE_LENGTH,
  clientSideCache: undefined,
  readonly: false,
} as const

/** Our own prefix names every key, whichever client is used. */
const NO_PREFIX = { keyPrefix: undefined, commandOptions: COMMAND_OPTIONS } as const

/** The same client with options under which a lost reply is an error, never a second charge. */
export function duplicateClient<Client extends Duplicable>(client: Client): Client {
  const { socket } = givenOptions(client)
  return client.duplicate({
    ...CLIENT_OPTIONS,
    ...NO_PREFIX,
    socket: { ...socket, ...SOCKET_OPTIONS },
  }) as Client
}

export function duplicateCluster<Client extends Duplicable>(client: Client): Client {
  const { defaults } = givenOptions(client)
  return client.duplicate({
    ...NO_PREFIX,
    clientSideCache: undefined,
    useReplicas: false,
    // Looking for the nodes must not wait for one that is down; each is connected when it is first needed.
    minimizeConnections: true,
    maxCommandRedirections: 8,
    topologyRefreshOnReconnectionAttemptStrategy: REDISCOVER_AFTER_MS,
    defaults: { ...defaults, ...CLIENT_OPTIONS, socket: { ...defaults?.socket, ...SOCKET_OPTIONS } },
  }) as Client
}

export function duplicateSentinel<Client extends Duplicable>(client: Client): Client {
  const { nodeClientOptions: node, sentinelClientOptions: sentinel } = givenOptions(client)
  return client.duplicate({
    ...NO_PREFIX,
    clientSideCache: undefined,
    replicaPoolSize: 0,
    // By default a command whose reply was lost is sent again to whatever primary is found next, up to 16 times.
    maxCommandRediscovers: 0,
    nodeClientOptions: { ...node, ...CLIENT_OPTIONS, socket: { ...node?.socket, ...SOCKET_OPTIONS } },
    sentinelClientOptions: {
      ...sentinel,
      socket: { ...sentinel?.socket, connectTimeout: CONNECT_TIMEOUT_MS },
    },
  }) as Client
}

/**
 * The options a client was made with. `duplicate` takes nested options whole, so a password or a certificate among them
 * would be lost if ours were not put on top of the caller's, and a sentinel does not show its own. But `duplicate` hands
 * them to the constructor of whatever it is called on.
 */
function givenOptions(client: Duplicable): NodeRedisGiven {
  let given: NodeRedisGiven = {}
  function Listener(options: NodeRedisGiven): void {
    given = options
  }
  const prototype = Object.create(client, { constructor: { value: Listener } })
  client.duplicate.call(Object.create(prototype))
  return given
}
