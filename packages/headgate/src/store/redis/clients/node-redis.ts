import type { RedisClientType, RedisClusterType, RedisSentinelType } from 'redis'
import type { RedisConnection } from '../connection.js'
import { CONNECT_TIMEOUT_MS, fullJitterMs } from '../reconnect.js'

/** A client, cluster or sentinel of node-redis, known by its methods: its types differ with the modules it carries. */
export interface NodeRedisLike {
  evalSha(...args: never[]): Promise<unknown>
  fCall(...args: never[]): Promise<unknown>
  duplicate(...args: never[]): unknown
}

export function isNodeRedis(client: object): client is NodeRedisLike {
  return 'evalSha' in client && 'fCall' in client && 'duplicate' in client
}

type Client = RedisClientType
type Cluster = RedisClusterType
type Sentinel = RedisSentinelType

const QUEUE_LENGTH = 100_000

/**
 * Fail at once while disconnected instead of queueing without bound. The client's own timeout is off: it makes an
 * abort signal for every command and does not cover commands already sent; the store's deadline covers both.
 */
const CLIENT_OPTIONS = { disableOfflineQueue: true, commandsQueueMaxLength: QUEUE_LENGTH } as const
const COMMAND_OPTIONS = { timeout: 0 } as const
const SOCKET_OPTIONS = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  reconnectStrategy: (retries: number) => fullJitterMs(retries + 1),
} as const

/** A connection of our own with the safe options, or the caller's own client where it is shared. */
export function nodeRedisConnection(client: NodeRedisLike, shared: boolean): RedisConnection {
  const own = (shared ? client : duplicate(client)) as unknown as Client
  let ready: Promise<unknown> | null = own.isOpen ? null : connect(own)

  return {
    cluster: isCluster(own),
    async ready() {
      if (ready === null) return
      await ready
      ready = null
    },
    evalsha: (sha, keys, args) => own.evalSha(sha, { keys, arguments: args }),
    eval: (text, keys, args) => own.eval(text, { keys, arguments: args }),
    fcall: (name, keys, args) => own.fCall(name, { keys, arguments: args }),
    loadFunctions: async code => {
      for (const node of await primaries(own)) await node.functionLoad(code, { REPLACE: true })
    },
    info: async () => ((await primaries(own))[0] as Client).info(),
    async close() {
      if (!shared && own.isOpen) await own.destroy()
    },
  }
}

function isCluster(client: unknown): client is Cluster {
  return typeof client === 'object' && client !== null && 'nodeClient' in client
}

function isSentinel(client: unknown): client is Sentinel {
  return typeof client === 'object' && client !== null && 'getSentinelNode' in client
}

/** An error listener is needed: without one a lost connection ends the process. The failed calls say the same. */
function connect(client: Client): Promise<unknown> {
  client.on('error', () => {})
  return client.connect()
}

function duplicate(client: unknown): unknown {
  if (isCluster(client)) {
    return client.duplicate({
      commandOptions: COMMAND_OPTIONS,
      maxCommandRedirections: 4,
      defaults: { ...CLIENT_OPTIONS, socket: SOCKET_OPTIONS },
    })
  }
  if (isSentinel(client)) {
    return client.duplicate({
      commandOptions: COMMAND_OPTIONS,
      nodeClientOptions: { ...CLIENT_OPTIONS, socket: SOCKET_OPTIONS },
    })
  }
  const single = client as Client
  return single.duplicate({
    ...CLIENT_OPTIONS,
    commandOptions: COMMAND_OPTIONS,
    socket: { ...single.options?.socket, ...SOCKET_OPTIONS } as NonNullable<Client['options']>['socket'] &
      object,
  })
}

async function primaries(client: Client | Cluster): Promise<Client[]> {
  if (!isCluster(client)) return [client]
  return Promise.all(client.masters.map(master => client.nodeClient(master))) as Promise<Client[]>
}
