/** The stats as they travel: the answer of `GET /v1/stats`, which the dashboard reads. */
import type { LimiterReading } from 'headgate/internal'
import type { ConfigCounts } from '../admin/probes.js'
import type { AnswerVitals } from '../metrics/vitals.js'
import type { Alert } from './alert-rules.js'
import type { ShownDeniedCaller } from './denied-callers.js'
import type { Processes } from './fleet.js'
import type { Budget, RedisStats } from './redis-stats.js'
import type { Row } from './second.js'
import type { Shortcuts, StoreStats } from './store-stats.js'

/** The current state, as `GET /v1/stats` answers it. */
export interface Snapshot {
  readonly atMs: number
  /** Whose stats: those of all processes on this Redis, or of this one alone. */
  readonly scope: 'fleet' | 'process'
  /** The Unix time in milliseconds of the last second received: the fleet's, if there is one. */
  readonly asOfMs: number
  readonly startedAtMs: number
  readonly service: string
  readonly windowMs: number
  readonly now: {
    readonly allowedPerSecond: number
    readonly deniedPerSecond: number
    readonly denialRate: number | null
    readonly overheadMs: { readonly p50: number | null; readonly p99: number | null }
    readonly nearLimitPerSecond: number
    readonly shadowDeniedPerSecond: number
  }
  readonly totals: { readonly allowed: number; readonly denied: number }
  readonly byTier: readonly Row[]
  readonly byPolicy: readonly Row[]
  readonly bySource: readonly Row[]
  readonly byRule: readonly Row[]
  /** What gateways answered themselves or closed, not because of a limit: counts since they started. */
  readonly gatewayAnswers: readonly AnswerVitals[]
  readonly deniedCallers: readonly ShownDeniedCaller[]
  /** By how much each of their counts may be too high or too low. */
  readonly deniedCallersErrorAtMost: number
  readonly processes: Processes
  readonly store: StoreStats & {
    /** Its last report about itself; null if there is none. */
    readonly redis: RedisStats | null
    readonly budget: Budget
  }
  readonly shortcuts: Shortcuts
  readonly shadow: readonly WouldBe[]
  readonly candidates: readonly WouldBe[]
  /** Whom limits in shadow and candidates would have denied most in the last minutes; the policy is the name of the limit. */
  readonly shadowCallers: readonly ShownDeniedCaller[]
  readonly divergence: number
  readonly control: LimiterReading['control']
  /** What the store has lost and this server still applies: how many overrides, and whether the switches; null if nothing. */
  readonly lost: { readonly control: boolean; readonly overrides: number } | null
  readonly overrides: number
  readonly config: {
    readonly version: string
    /** The Unix time in milliseconds since when it has been in force. */
    readonly loadedAtMs: number
    readonly state: ConfigCounts['config']
    readonly reloads: number
    readonly rejected: number
  }
  /** Those that fire. */
  readonly alerts: readonly Alert[]
}

export interface WouldBe {
  readonly policy: string
  readonly wouldAllow: number
  readonly wouldDeny: number
}
