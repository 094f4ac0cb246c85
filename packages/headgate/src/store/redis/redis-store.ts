import { systemClock, systemTimers } from '../../time/clock.js'
import type { ChangeTrail } from '../change-trail.js'
import type { ControlStore } from '../control-store.js'
import type { StoreHealth } from '../guard/health.js'
import { createPipeline, type World } from '../guard/pipeline.js'
import { toStore } from '../stage.js'
import type { StatisticsStore } from '../statistics-store.js'
import type { Store } from '../store.js'
import { connectionOf, type RedisClient } from './connection-of.js'
import { createOnDemand } from './on-demand.js'
import { createOperatorStores } from './operator-stores.js'
import { parseRedisOptions, type RedisStoreOptions } from './redis-options.js'
import { createRedisRemote, type ReadyOptions } from './redis-remote.js'

/** The Redis store: gives every request a decision, even while Redis does not. */
export interface RedisStore extends Store {
  readonly control: ControlStore
  /** The trail of who changed what, in the whole fleet. */
  readonly changes: ChangeTrail
  /** The counts of the processes that share it. */
  readonly fleetStatistics: StatisticsStore
  /**
   * Resolves to true when the store is connected and has inspected the server, and to false if that took longer
   * than `timeoutMs` (default 10,000) or the store was closed. Never rejects.
   */
  ready(options?: ReadyOptions): Promise<boolean>
  /** Returns which nodes are not asked, and how many requests were decided without them. */
  health(): StoreHealth
}

const realWorld: World = {
  clock: systemClock,
  timers: systemTimers,
  random: Math.random,
}

/**
 * Creates a store for limits shared by every process on the same Redis, decided there by one atomic script, on the
 * server's clock. The given client is duplicated, or made by the given function, and a lost reply is never charged
 * twice. When Redis is slow, frozen or gone, every request is still decided within the deadline, by the failure mode.
 */
export function redisStore(client: RedisClient, options: RedisStoreOptions = {}): RedisStore {
  return redisStoreIn(realWorld, client, options)
}

/** The same in a given world. */
export function redisStoreIn(world: World, client: RedisClient, options: RedisStoreOptions): RedisStore {
  const settings = parseRedisOptions(options)
  const { mode } = settings
  const connection = connectionOf(client, settings)
  const onDemand = connection.onDemand ? createOnDemand(world) : null
  const ownWorld = onDemand?.world ?? world
  const remote = createRedisRemote(connection, settings, ownWorld)
  const { stop, ...operatorStores } = createOperatorStores(remote, connection, settings, ownWorld)
  const pipeline = createPipeline(remote, settings, ownWorld)
  const first = onDemand?.before(pipeline) ?? pipeline
  async function close(): Promise<void> {
    stop()
    await first.close()
  }
  const stage = { ...first, close }
  return toStore(stage, {
    ...operatorStores,
    ready: remote.ready,
    health: pipeline.health,
    ...(onDemand && { underWay: onDemand.underWay }),
    ...(mode !== 'throw' && { onStoreFailure: mode }),
    ...(options.statistics && { statistics: options.statistics }),
  })
}
