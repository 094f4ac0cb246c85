import { Cluster, type ClusterOptions, Redis, type RedisOptions } from 'ioredis'
import {
  createClient,
  createCluster,
  createSentinel,
  type RedisClientOptions,
  type RedisClusterOptions,
  type RedisSentinelOptions,
} from 'redis'
import type { RedisClient } from '../../src/store/redis/connection-of.js'
import type { RedisCluster } from '../support/redis-cluster.ts'
import type { SentinelSetup } from '../support/redis-sentinel.ts'

/** A caller's client, which we did not create and must leave as it was. */
export interface CallersClient {
  readonly client: RedisClient
  connect(): Promise<void>
  /** Whether it is connected or connecting. */
  isOpen(): boolean
  ping(): Promise<unknown>
  close(): Promise<void>
}

export type Library = 'ioredis' | 'node-redis'
export const LIBRARIES: readonly Library[] = ['ioredis', 'node-redis']
export const MODES = ['scripts', 'functions'] as const

/** Creates a client of either library for the same servers. */
export type MakeClient = (library: Library) => CallersClient

export function singleClient(
  port: number,
  options: { readonly ioredis?: RedisOptions; readonly nodeRedis?: RedisClientOptions } = {},
): MakeClient {
  return library =>
    library === 'ioredis'
      ? fromIoredis(newRedis({ host: '127.0.0.1', port, ...options.ioredis }))
      : fromNodeRedis(
          createClient({
            ...options.nodeRedis,
            socket: { host: '127.0.0.1', port, ...options.nodeRedis?.socket } as object,
          }),
        )
}

export function clusterClient(
  cluster: Pick<RedisCluster, 'primaries'>,
  options: { readonly ioredis?: ClusterOptions; readonly nodeRedis?: Partial<RedisClusterOptions> } = {},
): MakeClient {
  const nodes = cluster.primaries.map(({ host, port }) => ({ host, port }))
  return library =>
    library === 'ioredis'
      ? fromIoredis(new Cluster(nodes, { lazyConnect: true, ...options.ioredis } as IoredisClusterOptions))
      : fromNodeRedis(createCluster({ rootNodes: nodes.map(socket => ({ socket })), ...options.nodeRedis }))
}

export function sentinelClient(
  setup: Pick<SentinelSetup, 'masterName' | 'sentinels'>,
  options: { readonly ioredis?: RedisOptions; readonly nodeRedis?: Partial<RedisSentinelOptions> } = {},
): MakeClient {
  const { masterName: name } = setup
  const sentinels = [...setup.sentinels]
  return library =>
    library === 'ioredis'
      ? fromIoredis(newRedis({ name, sentinels, ...options.ioredis }))
      : fromNodeRedis(createSentinel({ name, sentinelRootNodes: sentinels, ...options.nodeRedis }))
}

type IoredisClusterOptions = ConstructorParameters<typeof Cluster>[1] & object

function newRedis(options: RedisOptions): Redis {
  return new Redis({ lazyConnect: true, ...options } as never)
}

function fromIoredis(client: Redis | Cluster): CallersClient {
  client.on('error', () => {})
  return {
    client,
    connect: () => client.connect(),
    isOpen: () => client.status !== 'wait' && client.status !== 'end',
    ping: () => client.ping(),
    close: async () => client.disconnect(),
  }
}

/** The common part of the three kinds of node-redis client. */
interface NodeRedisClient {
  readonly isOpen: boolean
  on(event: 'error', listener: () => void): unknown
  connect(): Promise<unknown>
  ping?(): Promise<unknown>
  evalSha(...args: never[]): Promise<unknown>
  fCall(...args: never[]): Promise<unknown>
  duplicate(...args: never[]): unknown
  eval(...args: never[]): Promise<unknown>
  destroy(): unknown
}

function fromNodeRedis(made: object): CallersClient {
  const client = made as NodeRedisClient
  client.on('error', () => {})
  return {
    client,
    connect: async () => void (await client.connect()),
    isOpen: () => client.isOpen,
    ping: () => client.eval(...(['return 1', {}] as never[])),
    close: async () => void (client.isOpen && (await client.destroy())),
  }
}
