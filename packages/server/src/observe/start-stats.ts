import type { Config, RuleLimiter, Store } from 'headgate'
import { fleetRecords, type Masks } from 'headgate/internal'
import type { Statistics } from 'headgate/metrics'
import type { RedisStore } from 'headgate/redis'
import type { ConfigCounts } from '../admin/probes.js'
import type { WriteLine } from '../log/write-line.js'
import type { Vitals } from '../metrics/vitals.js'
import type { Alert, AlertOptions } from './alert-rules.js'
import { AlertWatch } from './alert-watch.js'
import { createRedisReader } from './redis-stats.js'
import { createStats, type Stats } from './stats.js'
import { createWebhook } from './webhook.js'

export interface StartStatsOptions {
  readonly limiter: RuleLimiter
  readonly statistics: Pick<Statistics, 'read' | 'onSecond'>
  /** The policy file in force. */
  config(): Config
  readonly store?: Store | RedisStore
  readonly alerts: AlertOptions
  readonly admin: { readonly showSubjects: boolean }
  readonly log: WriteLine
  configState(): ConfigCounts
  /** How this process is doing. */
  vitals(): Vitals
}

const ALL_SHOWN: Masks = { byType: {}, others: 'whole' }

/** Starts the stats of a server and its alerts, which go to the log and to the webhook. */
export function startStats(options: StartStatsOptions): Stats {
  const { limiter, statistics, store, log, configState } = options
  const { rules, budget, webhook } = options.alerts
  const send = webhook === null ? () => {} : createWebhook({ url: webhook, log, after: later, fetch })
  const tell = (alert: Alert): void => {
    const { name: alertName, state, value, threshold } = alert
    const level = state === 'firing' ? 'warn' : 'info'
    log(`alert ${state}: ${alertName}: ${alert.text}`, { level, alert: alertName, state, value, threshold })
    send(alert)
  }
  const fleet = fleetRecords(store)?.statistics ?? null
  const info = async (): Promise<string> => (await fleet?.serverInfo()) ?? ''
  const isEvictionUnsafe = (): boolean =>
    store !== undefined && 'health' in store && store.health().evictionPolicyUnsafe
  return createStats({
    limiter,
    statistics,
    fleet,
    budget,
    vitals: options.vitals,
    configState,
    unixMs: Date.now,
    masks: options.admin.showSubjects ? () => ALL_SHOWN : () => options.config().masks,
    service: options.config().service ?? '',
    storeKind: store?.source === 'redis' ? 'redis' : 'memory',
    readRedis: fleet === null ? null : createRedisReader(info, isEvictionUnsafe, Date.now),
    alerts: new AlertWatch({ rules, tell, unixMs: Date.now }),
  })
}

function later(ms: number, work: () => void): void {
  setTimeout(work, ms).unref()
}
