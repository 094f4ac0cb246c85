import { CONNECT_TIMEOUT_MS, reconnectDelayMs, silentDelayMs } from '../reconnect.js'
import type { NodeRedisGiven } from './node-redis-shape.js'

interface Duplicable {
  duplicate(overrides?: object): unknown
}

const QUEUE_LENGTH = 100_000

/** How soon a node that does not come back is looked for elsewhere; the client's default is 5 s. */
const REDISCOVER_AFTER_MS = 500

/**
 * Disables the client's own timeout: it creates an abort signal per command and does not cover commands already
 * sent, while the store's deadline covers both. Setting the options anew also drops a type mapping the caller may
 * use.
 */
export const COMMAND_OPTIONS = { timeout: 0 } as const

const SOCKET_OPTIONS = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  reconnectStrategy: (retries: number, cause: Error) =>
    /timeout/i.test(cause.message) ? silentDelayMs() : reconnectDelayMs(retries + 1),
} as const

/**
 * Fails at once while disconnected instead of queueing without bound, and keeps nothing that changes keys or
 * replies.
 */
const CLIENT_OPTIONS = {
  disableOfflineQueue: true,
  commandsQueueMaxLength: QUEUE_LENGTH,
  clientSideCache: undefined,
  readonly: false,
} as const

/** Our own prefix names every key, whichever client is used. */
const NO_PREFIX = { keyPrefix: undefined, commandOptions: COMMAND_OPTIONS } as const

/** Duplicates a client with options under which a lost reply is an error, never a second charge. */
export function duplicateClient<Client extends Duplicable>(client: Client): Client {
  const { socket } = givenOptions(client)
  return client.duplicate({
    ...CLIENT_OPTIONS,
    ...NO_PREFIX,
    socket: { ...socket, ...SOCKET_OPTIONS },
  }) as Client
}

/** Duplicates a cluster client in the same way. */
export function duplicateCluster<Client extends Duplicable>(client: Client): Client {
  const { defaults } = givenOptions(client)
  return client.duplicate({
    ...NO_PREFIX,
    clientSideCache: undefined,
    useReplicas: false,
    // Discovery must not wait for a node that is down; each is connected when it is first needed.
    minimizeConnections: true,
    maxCommandRedirections: 8,
    topologyRefreshOnReconnectionAttemptStrategy: REDISCOVER_AFTER_MS,
    defaults: { ...defaults, ...CLIENT_OPTIONS, socket: { ...defaults?.socket, ...SOCKET_OPTIONS } },
  }) as Client
}

/** Duplicates a sentinel client in the same way. */
export function duplicateSentinel<Client extends Duplicable>(client: Client): Client {
  const { nodeClientOptions: node, sentinelClientOptions: sentinel } = givenOptions(client)
  return client.duplicate({
    ...NO_PREFIX,
    clientSideCache: undefined,
    replicaPoolSize: 0,
    // By default a command whose reply was lost is resent to the next primary found, up to 16 times.
    maxCommandRediscovers: 0,
    nodeClientOptions: { ...node, ...CLIENT_OPTIONS, socket: { ...node?.socket, ...SOCKET_OPTIONS } },
    sentinelClientOptions: {
      ...sentinel,
      socket: { ...sentinel?.socket, connectTimeout: CONNECT_TIMEOUT_MS },
    },
  }) as Client
}

/**
 * Returns the options a client was made with. `duplicate` replaces nested options as a whole, so a password or
 * certificate among them would be lost unless ours are merged with the caller's. A sentinel does not expose its
 * options, but `duplicate` passes them to the constructor of the object it is called on.
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
