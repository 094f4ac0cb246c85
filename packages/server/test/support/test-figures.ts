import type { RuleLimiter } from 'headgate'
import { createStatistics, type Statistics } from 'headgate/statistics'
import { DEFAULT_RULES } from '../../src/observe/alert-rules.js'
import { AlertWatch } from '../../src/observe/alert-watch.js'
import { createFigures, type Figures, type FiguresOptions } from '../../src/observe/figures.js'

/** Returns the figures of a limiter in this process, with its limits there too. */
export function figuresOf(
  limiter: RuleLimiter,
  statistics: Statistics = createStatistics(),
  options: Partial<FiguresOptions> = {},
): Figures {
  return createFigures({
    limiter,
    statistics,
    storeKind: 'memory',
    service: '',
    unixMs: Date.now,
    masks: () => ({ byType: {}, others: 'part' }),
    fleet: null,
    readRedis: null,
    budget: { opsPerSecond: null, memoryBytes: null },
    alerts: new AlertWatch({ rules: DEFAULT_RULES, tell() {}, unixMs: Date.now }),
    configState: () => ({ config: 'current', refusedConfigs: 0 }),
    ...options,
  })
}
