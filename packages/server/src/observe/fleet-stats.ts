import type { Config, RuleLimiter } from 'headgate'
import { fleetRecords, type Report } from 'headgate/internal'
import { createStatistics } from 'headgate/metrics'
import type { RedisStore } from 'headgate/redis'
import { DEFAULT_RULES } from './alert-rules.js'
import { AlertWatch } from './alert-watch.js'
import { mergeReports } from './merge-reports.js'
import { createRedisReader } from './redis-stats.js'
import type { Snapshot } from './snapshot.js'
import { createStats } from './stats.js'

const NO_REPORT: Report = { ...mergeReports([]), denials: [] }

/**
 * Reads the state of a fleet from the reports in Redis, without being part of it: each call takes what came since
 * the last. Null if Redis does not answer.
 */
export function createFleetStats(
  limiter: RuleLimiter,
  store: RedisStore,
  config: Config,
): () => Promise<Snapshot | null> {
  const { statistics: fleet } = fleetRecords(store)
  const nothing = createStatistics()
  let pass = (_second: Report): void => {}
  const stats = createStats({
    limiter,
    fleet,
    storeKind: 'redis',
    service: config.service ?? '',
    unixMs: Date.now,
    statistics: {
      read: () => nothing.read(),
      onSecond(listener) {
        pass = listener
        return () => {}
      },
    },
    masks: () => config.masks,
    readRedis: createRedisReader(
      async () => (await fleet.serverInfo()) ?? '',
      () => store.health().evictionPolicyUnsafe,
      Date.now,
    ),
    vitals: null,
    budget: { opsPerSecond: null, memoryBytes: null },
    // Alerts are sent by servers only.
    alerts: new AlertWatch({ rules: DEFAULT_RULES, tell() {}, unixMs: Date.now }),
    configState: () => ({ config: 'current', rejectedConfigs: 0 }),
  })
  return () =>
    new Promise(resolve => {
      const stop = stats.onSnapshot(snapshot => {
        stop()
        resolve(snapshot.scope === 'fleet' ? snapshot : null)
      })
      pass(NO_REPORT)
    })
}
