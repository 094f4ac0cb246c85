import { HeadgateError } from 'headgate'
import { type RedisClient, type RedisStore, type RedisStoreOptions, redisStore } from 'headgate/redis'
import { createClient, createCluster, createSentinel } from 'redis'
import { parseRedisUrl, type RedisAddress } from './parse-redis-url.js'

export interface RedisConnectOptions {
  /** For `rediss://`: the authority to trust, in PEM. Default: those Node trusts. */
  readonly ca?: string
}

export interface RedisStoreByUrl extends RedisStoreOptions, RedisConnectOptions {
  /** One URL, or those of several nodes of a cluster. */
  readonly url: string | readonly string[]
}

const CONNECT_TIMEOUT_MS = 500
const FIRST_DELAY_MS = 50
const MAX_DELAY_MS = 2_000
const QUEUE_LENGTH = 100_000

/**
 * Creates a node-redis client for the URL, not connected yet: one server, a cluster or a primary behind sentinels.
 * It never queues without bound, waits for no command longer than its caller, and does not resend what may have
 * been executed. After an outage a fleet of them reconnects spread over two seconds.
 */
export function connectRedis(url: string | readonly string[], options: RedisConnectOptions = {}) {
  const address = parseUrls(typeof url === 'string' ? [url] : url)
  const client = createFor(address, options)
  // Without a listener a lost connection would end the process. Failed commands report it anyway.
  client.on('error', () => {})
  return client
}

/** Creates the Redis store for a URL. Closing it closes everything it opened. */
export function createRedisStore({ url, ca, ...options }: RedisStoreByUrl): RedisStore {
  return redisStore(connectRedis(url, ca === undefined ? {} : { ca }) as RedisClient, options)
}

function parseUrls(urls: readonly string[]): RedisAddress {
  const [first, ...others] = urls.map(parseRedisUrl)
  if (first === undefined) {
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: 'Redis url',
      expected: 'one at least',
      got: 'none',
    })
  }
  if (others.length === 0) return first
  if ([first, ...others].some(address => address.topology !== 'single' || address.database !== 0)) {
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: 'Redis url',
      expected: 'several urls to be nodes of one cluster, redis:// or rediss:// without a database',
      got: 'others',
    })
  }
  return {
    ...first,
    topology: 'cluster',
    nodes: [first, ...others].flatMap(address => address.nodes),
  }
}

function createFor(address: RedisAddress, { ca }: RedisConnectOptions) {
  const { topology, tls, nodes, primaryName } = address
  const secure = tls ? { tls: true as const, ...(ca !== undefined && { ca }) } : {}
  const socket = { ...secure, connectTimeout: CONNECT_TIMEOUT_MS, reconnectStrategy: fullJitterMs }
  const commandOptions = { timeout: 0 }
  const login = {
    ...(address.username !== undefined && { username: address.username }),
    ...(address.password !== undefined && { password: address.password }),
    disableOfflineQueue: true,
    commandsQueueMaxLength: QUEUE_LENGTH,
  }
  if (topology === 'cluster') {
    const rootNodes = nodes.map(node => ({ socket: { ...node, ...secure } }))
    return createCluster({ rootNodes, commandOptions, defaults: { ...login, socket } })
  }
  if (topology === 'sentinel') {
    return createSentinel({
      name: primaryName ?? '',
      sentinelRootNodes: [...nodes],
      commandOptions,
      maxCommandRediscovers: 0,
      nodeClientOptions: { ...login, database: address.database, socket },
      sentinelClientOptions: { socket: { ...secure, connectTimeout: CONNECT_TIMEOUT_MS } },
    })
  }
  return createClient({
    ...login,
    database: address.database,
    commandOptions,
    socket: { ...nodes[0], ...socket },
  })
}

/** Full jitter: anything from 0 to the ceiling, which doubles from 100 ms to 2 s. */
function fullJitterMs(retries: number): number {
  return Math.ceil(Math.random() * Math.min(MAX_DELAY_MS, FIRST_DELAY_MS * 2 ** Math.min(retries + 1, 10)))
}
