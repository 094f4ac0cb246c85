import type { ChangeTrail } from '../change-trail.js'
import type { ControlStore } from '../control-store.js'
import type { World } from '../remote/remote-store.js'
import type { StatisticsStore } from '../statistics-store.js'
import type { RedisConnection } from './connection.js'
import { redisChanges } from './redis-changes.js'
import { redisControl } from './redis-control.js'
import type { RedisSettings } from './redis-options.js'
import type { RedisRemote } from './redis-remote.js'
import { redisStatistics } from './redis-statistics.js'

/** The stores of operators in Redis, beside the limits. */
export interface OperatorStores {
  readonly control: ControlStore
  readonly changes: ChangeTrail
  readonly fleetStatistics: StatisticsStore
}

/** Makes them over the connection of the requests, which never wait for them. `stop` ends what they do by themselves. */
export function createOperatorStores(
  { callBeside: call, clockUs }: RedisRemote,
  connection: RedisConnection,
  { prefix, tenant, service, statistics }: RedisSettings,
  { timers, random }: World,
): OperatorStores & { stop(): void } {
  const shared = { prefix, tenant, service, call, clockUs, timers }
  const fleetStatistics = redisStatistics({
    ...shared,
    member: () => random().toString(36).slice(2),
    info: connection.info === undefined ? undefined : async () => (await connection.info?.()) ?? '',
    // A connection that lives as long as a request has no second to leave anything of.
    statistics: connection.onDemand ? null : statistics,
  })
  return {
    control: redisControl(shared),
    changes: redisChanges(shared),
    fleetStatistics,
    stop: () => fleetStatistics.stop(),
  }
}
