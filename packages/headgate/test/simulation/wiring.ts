import type { RedisConnection } from '../../src/store/redis/connection.ts'
import type { RedisStoreOptions } from '../../src/store/redis/redis-options.ts'
import { type RedisStore, redisStoreIn } from '../../src/store/redis/redis-store.ts'
import type { World } from '../../src/store/remote/remote-store.ts'

/** Creates a simulated process's store from its connection. */
export type Wiring = (world: World, connection: RedisConnection, options: RedisStoreOptions) => RedisStore

/** The store as users get it. Wrappers between limiter and Redis are simulated by adding them here. */
export const wireStore: Wiring = (world, connection, options) => redisStoreIn(world, connection, options)
