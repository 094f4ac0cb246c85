import type { Cluster, Redis, RedisOptions } from 'ioredis'
import type { RedisConnection } from '../connection.js'
import { CONNECT_TIMEOUT_MS, fullJitterMs } from '../reconnect.js'

/** A client of ioredis or of a fork of it (iovalkey), single, sentinel or cluster, known by its methods. */
export interface IoredisLike {
  readonly status: string
  defineCommand(...args: never[]): unknown
  duplicate(...args: never[]): unknown
}

export function isIoredis(client: object): client is IoredisLike {
  return 'defineCommand' in client && 'status' in client && 'duplicate' in client
}

/**
 * Options that make a lost reply an error instead of a second charge. By default ioredis queues while it is
 * disconnected and sends again what was not answered: the script would run twice for one request.
 */
const SAFE_OPTIONS = {
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  autoResendUnfulfilledCommands: false,
  connectTimeout: CONNECT_TIMEOUT_MS,
  retryStrategy: (attempt: number) => fullJitterMs(attempt),
  reconnectOnError: (error: Error) => error.message.startsWith('READONLY'),
  lazyConnect: false,
} as const satisfies RedisOptions

/** A connection of our own with the safe options, or the caller's own client where it is shared. */
export function ioredisConnection(client: IoredisLike, shared: boolean): RedisConnection {
  const given = client as unknown as Redis | Cluster
  const own = shared ? given : duplicate(given)
  // Without a listener every lost connection is printed; the failed calls say the same.
  if (!shared) own.on('error', () => {})
  let ready: Promise<void> | null = own.status === 'ready' ? null : whenReady(own)

  return {
    cluster: own.isCluster,
    async ready() {
      if (ready === null) return
      await ready
      ready = null
    },
    evalsha: (sha, keys, args) => own.evalsha(sha, keys.length, ...keys, ...args),
    eval: (text, keys, args) => own.eval(text, keys.length, ...keys, ...args),
    fcall: (name, keys, args) => own.fcall(name, keys.length, ...keys, ...args),
    loadFunctions: code =>
      Promise.all(primaries(own).map(node => node.call('FUNCTION', 'LOAD', 'REPLACE', code))),
    info: () => (primaries(own)[0] as Redis).info(),
    async close() {
      if (!shared) own.disconnect()
    },
  }
}

function duplicate(client: Redis | Cluster): Redis | Cluster {
  if (!isCluster(client)) return client.duplicate(SAFE_OPTIONS)
  const options: Parameters<Cluster['duplicate']>[1] = {
    enableOfflineQueue: false,
    maxRedirections: 4,
    // 0 turns off sending again after a lost connection.
    retryDelayOnFailover: 0,
    retryDelayOnClusterDown: 0,
    clusterRetryStrategy: (attempt: number) => fullJitterMs(attempt),
    redisOptions: { ...client.options.redisOptions, ...SAFE_OPTIONS } as object,
  }
  return client.duplicate(undefined, options)
}

function isCluster(client: Redis | Cluster): client is Cluster {
  return client.isCluster
}

function primaries(client: Redis | Cluster): Redis[] {
  return isCluster(client) ? client.nodes('master') : [client]
}

function whenReady(client: Redis | Cluster): Promise<void> {
  return new Promise(resolve => {
    client.once('ready', () => resolve())
    // A client made with lazyConnect connects at its first command, which would wait for this.
    if (client.status === 'wait') client.connect().catch(() => {})
  })
}
