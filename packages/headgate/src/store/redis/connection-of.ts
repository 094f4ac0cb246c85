import { unexpected } from '../../errors/headgate-error.js'
import { type IoredisLike, ioredisConnection, isIoredis } from './clients/ioredis.js'
import { isNodeRedis, isNodeRedis4, type NodeRedisLike, nodeRedisConnection } from './clients/node-redis.js'
import { isUpstash, upstashConnection } from './clients/upstash.js'
import type { RedisConnection } from './connection.js'
import type { StoreWarning } from './inspect.js'

/**
 * A client of node-redis or ioredis, of any topology, of Upstash or Vercel KV, or anything that can run a script.
 */
export type RedisClient = NodeRedisLike | IoredisLike | RedisConnection

interface ConnectionOptions {
  /** Use the client itself. */
  readonly shared: boolean
  /** How long a call may take. */
  readonly deadlineMs: number
  warn(warning: StoreWarning): void
}

/** Returns the connection for a client: our own duplicate of it, or the client itself if it is shared. */
export function connectionOf(
  client: RedisClient,
  { shared, deadlineMs, warn }: ConnectionOptions,
): RedisConnection {
  // A URL passed in by mistake may contain a password, so only its type is shown.
  if (typeof client !== 'object' || client === null) {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'client', 'a Redis client', kindOf(client))
  }
  if (isNodeRedis(client) || isIoredis(client)) {
    if (isNodeRedis4(client)) {
      const expected = 'a client of node-redis 5 or later, of ioredis or of Upstash'
      throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'client', expected, 'node-redis 4')
    }
    if (shared) {
      warn({
        code: 'WARN_HEADGATE_SHARED_CLIENT',
        message:
          'shared: the client keeps its own options. If it sends again after a lost reply, a request is charged twice; ' +
          'if it has a keyPrefix, limits are not shared with clients without it.',
      })
    }
    return isNodeRedis(client)
      ? nodeRedisConnection(client, shared)
      : ioredisConnection(client, shared, deadlineMs)
  }
  if (isUpstash(client)) return upstashConnection(client)
  if (typeof client.evalsha === 'function' && typeof client.eval === 'function') return client
  throw unexpected(
    'ERR_HEADGATE_INVALID_OPTION',
    'client',
    'a node-redis or ioredis client, or an object with evalsha and eval',
    client,
  )
}

function kindOf(value: unknown): string {
  return value === null ? 'null' : typeof value
}
