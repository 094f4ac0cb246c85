import type { RuleLimiter } from 'headgate'
import { createStatistics, type Statistics } from 'headgate/metrics'
import { DEFAULT_RULES } from '../../src/observe/alert-rules.js'
import { AlertWatch } from '../../src/observe/alert-watch.js'
import { createStats, type Stats, type StatsOptions } from '../../src/observe/stats.js'

/** Returns the stats of a limiter in this process, with its limits there too. */
export function statsOf(
  limiter: RuleLimiter,
  statistics: Statistics = createStatistics(),
  options: Partial<StatsOptions> = {},
): Stats {
  return createStats({
    limiter,
    statistics,
    storeKind: 'memory',
    service: '',
    unixMs: Date.now,
    masks: () => ({ byType: {}, others: 'part' }),
    fleet: null,
    readRedis: null,
    vitals: null,
    budget: { opsPerSecond: null, memoryBytes: null },
    alerts: new AlertWatch({ rules: DEFAULT_RULES, tell() {}, unixMs: Date.now }),
    configState: () => ({ config: 'current', rejectedConfigs: 0 }),
    ...options,
  })
}
