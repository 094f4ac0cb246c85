import { createClient, createCluster, createSentinel } from '@redis/client'
import { HeadgateError } from 'headgate'
import { clientOptions, type RedisStore, type RedisStoreOptions, redisStore } from 'headgate/redis'
import { parseRedisUrl, type RedisAddress } from './parse-redis-url.js'

export interface RedisConnectOptions {
  /** For `rediss://`: the authority to trust, in PEM. Default: those Node trusts. */
  readonly ca?: string
}

export interface RedisStoreByUrl extends RedisStoreOptions, RedisConnectOptions {
  /** One URL, or those of several nodes of a cluster. */
  readonly url: string | readonly string[]
}

/**
 * Creates a node-redis client for the URL, not connected yet: one server, a cluster or a primary behind sentinels.
 * It never queues without bound, waits for no command longer than its caller, and does not resend what may have
 * been executed.
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
  const connectOptions = ca === undefined ? {} : { ca }
  return redisStore(() => connectRedis(url, connectOptions), options)
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
  const { topology, tls, nodes, primaryName, username, password, database } = address
  const secure = tls ? { tls: true as const, ...(ca !== undefined && { ca }) } : {}
  const login = { ...(username !== undefined && { username }), ...(password !== undefined && { password }) }
  if (topology === 'cluster') {
    const { defaults, ...options } = clientOptions.nodeRedisCluster
    const rootNodes = nodes.map(node => ({ socket: { ...node, ...secure } }))
    const socket = { ...secure, ...defaults.socket }
    return createCluster({ ...options, rootNodes, defaults: { ...defaults, ...login, socket } })
  }
  if (topology === 'sentinel') {
    const {
      nodeClientOptions: node,
      sentinelClientOptions: sentinel,
      ...options
    } = clientOptions.nodeRedisSentinel
    return createSentinel({
      ...options,
      name: primaryName ?? '',
      sentinelRootNodes: [...nodes],
      nodeClientOptions: { ...node, ...login, database, socket: { ...secure, ...node.socket } },
      sentinelClientOptions: { socket: { ...secure, ...sentinel.socket } },
    })
  }
  const { socket, ...options } = clientOptions.nodeRedis
  return createClient({ ...options, ...login, database, socket: { ...nodes[0], ...secure, ...socket } })
}
