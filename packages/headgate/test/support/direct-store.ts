import type { RedisClient } from '../../src/store/redis/connection-of.ts'
import type { RedisStoreOptions } from '../../src/store/redis/redis-options.ts'
import { type RedisStore, redisStore } from '../../src/store/redis/redis-store.ts'

/** Creates a store that answers what Redis says or rejects: nothing is cached, and there is no fallback. */
export function directRedisStore(client: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  return redisStore(client, { ...options, onStoreFailure: 'throw', denyCache: false })
}
