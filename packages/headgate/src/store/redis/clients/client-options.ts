import type { ClusterOptions, RedisOptions } from 'ioredis'
import { CONNECT_TIMEOUT_MS, reconnectDelayMs } from '../reconnect.js'
import { TRYAGAIN_PAUSE_MS } from '../script-runner.js'

/** By default, closing waits two seconds for a server that does not confirm, and keeps the process alive. */
const DISCONNECT_TIMEOUT_MS = 20
const QUEUE_LENGTH = 100_000

/** ioredis: nothing waits for a connection, nothing is sent again, and a lost connection is replaced by the store. */
const ioredis = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  enableAutoPipelining: false,
  connectTimeout: CONNECT_TIMEOUT_MS,
  disconnectTimeout: DISCONNECT_TIMEOUT_MS,
  retryStrategy: () => null,
  lazyConnect: true,
  // The store's own prefix names every key, whichever client is used.
  keyPrefix: '',
  readOnly: false,
  // With sentinels: use only the primary, and learn of a new one even while the old one is frozen.
  role: 'master',
  failoverDetector: true,
  sentinelCommandTimeout: CONNECT_TIMEOUT_MS,
  sentinelRetryStrategy: () => null,
} as const satisfies RedisOptions

const ioredisNode = {
  ...ioredis,
  // A node that was lost is connected again by the cluster, and a replica when it is promoted.
  retryStrategy: (attempt: number) => reconnectDelayMs(attempt),
} as const satisfies RedisOptions

const ioredisCluster = {
  lazyConnect: true,
  keyPrefix: '',
  enableAutoPipelining: false,
  scaleReads: 'master',
  // Lets a command wait for the connection to a newly discovered node. The store sends none before it is connected.
  enableOfflineQueue: true,
  // 0 disables resending after a lost connection.
  retryDelayOnFailover: 0,
  retryDelayOnClusterDown: 0,
  // TRYAGAIN means that nothing ran, because the keys of the script are being moved.
  retryDelayOnTryAgain: TRYAGAIN_PAUSE_MS,
  maxRedirections: 10,
  slotsRefreshTimeout: CONNECT_TIMEOUT_MS,
  clusterRetryStrategy: () => null,
  redisOptions: ioredisNode,
} as const satisfies ClusterOptions

/** Its own timeout makes an abort signal for every command and does not cover those already sent; a deadline does. */
const commandOptions = { timeout: 0 } as const

const nodeRedisNode = {
  disableOfflineQueue: true,
  commandsQueueMaxLength: QUEUE_LENGTH,
} as const

/** node-redis: the same. */
const nodeRedis = {
  ...nodeRedisNode,
  commandOptions,
  socket: { connectTimeout: CONNECT_TIMEOUT_MS, reconnectStrategy: false },
} as const

const reconnecting = {
  connectTimeout: CONNECT_TIMEOUT_MS,
  reconnectStrategy: (retries: number) => reconnectDelayMs(retries + 1),
} as const

const nodeRedisCluster = {
  commandOptions,
  useReplicas: false,
  // Discovery must not wait for a node that is down; each is connected when it is first needed.
  minimizeConnections: true,
  maxCommandRedirections: 8,
  defaults: { ...nodeRedisNode, socket: reconnecting },
} as const

const nodeRedisSentinel = {
  commandOptions,
  replicaPoolSize: 0,
  // By default a command whose reply was lost is resent to the next primary found, up to 16 times.
  maxCommandRediscovers: 0,
  nodeClientOptions: { ...nodeRedisNode, socket: reconnecting },
  sentinelClientOptions: { socket: { connectTimeout: CONNECT_TIMEOUT_MS } },
} as const

/**
 * The options a client should have that only a store uses: nothing queues, nothing is sent twice, and an attempt to
 * connect ends soon. Spread them into the options of a client made by the function given to `redisStore`.
 */
export const clientOptions = {
  ioredis,
  ioredisCluster,
  nodeRedis,
  nodeRedisCluster,
  nodeRedisSentinel,
} as const
