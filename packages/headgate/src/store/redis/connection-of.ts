import { HeadgateError, invalidOption, show } from '../../errors/headgate-error.js'
import {
  duplicateIoredis,
  fromIoredis,
  type IoredisLike,
  isIoredis,
  whenIoredisReady,
} from './clients/ioredis.js'
import {
  duplicateNodeRedis,
  fromNodeRedis,
  isNodeRedis,
  isNodeRedis4,
  type NodeRedisLike,
  whenNodeRedisOpen,
} from './clients/node-redis.js'
import { type LibraryClient, ownConnection, sharedConnection } from './clients/own-connection.js'
import { isUpstash, upstashConnection } from './clients/upstash.js'
import type { RedisConnection } from './connection.js'
import type { StoreWarning } from './inspect.js'

/**
 * A client of node-redis or ioredis, of any topology, of Upstash or Vercel KV, or anything that can run a script; or a
 * function that makes a client of node-redis or ioredis, a new one each time it is called.
 */
export type RedisClient = NodeRedisLike | IoredisLike | RedisConnection | MakeRedisClient

/** Makes a new client, connected or not, that nobody else uses: the store connects it and discards it. */
export type MakeRedisClient = () => NodeRedisLike | IoredisLike

interface ConnectionOptions {
  /** Use the client itself. */
  readonly shared: boolean
  warn(warning: StoreWarning): void
}

/**
 * Returns the connection for a client: one of our own, made by the caller's function or duplicated from the client,
 * or the client itself if it is shared.
 */
export function connectionOf(client: RedisClient, { shared, warn }: ConnectionOptions): RedisConnection {
  if (typeof client === 'function') {
    if (shared) {
      throw invalidOption('shared', 'false beside a function', shared)
    }
    return ownConnection(makerOf(client))
  }
  // A URL passed in by mistake may contain a password, so only its type is shown.
  if (typeof client !== 'object' || client === null) throw rejected('a Redis client', kindOf(client))
  if (isNodeRedis(client) || isIoredis(client)) {
    rejectOld(client)
    if (!shared) return ownConnection(() => adapted(duplicate(client)))
    warn({
      code: 'WARN_HEADGATE_SHARED_CLIENT',
      message:
        'shared: the client keeps its own options. If it sends again after a lost reply, a request is charged twice; ' +
        'if it has a keyPrefix, limits are not shared with clients without it.',
    })
    return isNodeRedis(client)
      ? sharedConnection(fromNodeRedis(client), () => whenNodeRedisOpen(client))
      : sharedConnection(fromIoredis(client), () => whenIoredisReady(client))
  }
  if (isUpstash(client)) return upstashConnection(client)
  if (typeof client.evalsha === 'function' && typeof client.eval === 'function') return client
  throw rejected('a node-redis or ioredis client, or an object with evalsha and eval', show(client))
}

/** Calls the caller's function, and rejects what cannot be used. */
function makerOf(make: MakeRedisClient): () => LibraryClient {
  const made = new WeakSet<object>()
  return () => {
    const client: unknown = make()
    const isClient =
      typeof client === 'object' && client !== null && (isNodeRedis(client) || isIoredis(client))
    if (!isClient) throw rejected('a function that returns a node-redis or ioredis client', kindOf(client))
    // A client is discarded for good when it is replaced.
    if (made.has(client)) throw rejected('a function that makes a new client each time', 'the same one again')
    made.add(client)
    rejectOld(client)
    return adapted(client)
  }
}

function rejectOld(client: object): void {
  if (!isNodeRedis4(client)) return
  throw rejected('a client of node-redis 5 or later, of ioredis or of Upstash', '"node-redis 4"')
}

function adapted(client: NodeRedisLike | IoredisLike): LibraryClient {
  return isNodeRedis(client) ? fromNodeRedis(client) : fromIoredis(client)
}

function duplicate(client: NodeRedisLike | IoredisLike): NodeRedisLike | IoredisLike {
  return isNodeRedis(client) ? duplicateNodeRedis(client) : duplicateIoredis(client)
}

function rejected(expected: string, got: string): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_INVALID_OPTION', { field: 'client', expected, got })
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : `a value of type ${typeof value}`
}
