/** The answers of the admin port, as far as the page reads them. Names in them come from outside and are shown as text only. */

export interface Row {
  readonly name: string | null
  readonly allowedPerSecond: number
  readonly deniedPerSecond: number
  readonly violationRate: number | null
  readonly p50Ms: number | null
  readonly p99Ms: number | null
}

export interface Violator {
  readonly subject: string
  readonly handle: string
  readonly denied: number
  readonly deniedPerSecond: number
  readonly policy: string | null
  readonly tier: string | null
  readonly overridden: boolean
}

export interface Breaker {
  readonly node: string
  readonly state: 'closed' | 'open' | 'half-open'
  readonly sinceMs: number
}

export interface StoreFigures {
  readonly kind: 'redis' | 'memory'
  readonly state: 'up' | 'down'
  readonly sinceMs: number
  readonly availability: number | null
  readonly breakers: readonly Breaker[]
  readonly callsPerSecond: number
  readonly latencyMs: { readonly p50: number | null; readonly p99: number | null }
  readonly errorsPerSecond: number
  /** Null where it could not be asked. */
  readonly redis?: {
    readonly usedMemoryBytes: number | null
    readonly maxMemoryBytes: number | null
    readonly opsPerSecond: number | null
    readonly keys: number | null
    readonly evictionPolicyUnsafe: boolean
  } | null
}

export interface WouldBe {
  readonly policy: string
  readonly wouldAllow: number
  readonly wouldDeny: number
}

export interface Alert {
  readonly id: string
  readonly name: string
  readonly state: 'pending' | 'firing' | 'resolved'
  readonly sinceMs: number
  readonly resolvedAtMs: number | null
  readonly text: string
}

export interface Control {
  readonly enabled: boolean
  readonly multiplier: number
}

export interface Snapshot {
  readonly atMs: number
  readonly scope: 'fleet' | 'process'
  readonly asOfMs: number
  readonly now: {
    readonly allowedPerSecond: number
    readonly deniedPerSecond: number
    readonly violationRate: number | null
    readonly overheadMs: { readonly p50: number | null; readonly p99: number | null }
    readonly shadowDeniedPerSecond: number
  }
  readonly byTier: readonly Row[]
  readonly byPolicy: readonly Row[]
  readonly bySource: readonly Row[]
  readonly violators: readonly Violator[]
  /** Left out where the limits are kept in one process. */
  readonly processes?: {
    readonly live: number
    readonly services: readonly { readonly service: string; readonly live: number }[]
  }
  readonly store: StoreFigures
  readonly shadow: readonly WouldBe[]
  readonly candidates: readonly WouldBe[]
  readonly divergence: number
  readonly control: Control
  readonly overrides: number
  readonly config: { readonly version: string; readonly state: 'current' | 'stale' }
  /** Those that fire now; left out where nothing watches for them. */
  readonly alerts?: readonly Alert[]
}

export interface Point {
  readonly atMs: number
  readonly allowed: number
  readonly denied: number
  readonly p50Ms: number | null
  readonly p99Ms: number | null
}

export interface LimitState {
  /** `<policy>.<limit>`. */
  readonly name: string
  readonly scope: string
  /** Whose budget: the caller's, everybody's, or that of a network around the caller. */
  readonly subject: string
  readonly limit: number
  readonly remaining: number
  readonly resetAfterMs: number
  readonly retryAfterMs: number | null
}

export interface Override {
  readonly subject?: string
  readonly rule?: string
  readonly tier?: string
  readonly numbers?: Readonly<Record<string, unknown>>
  readonly limits?: Readonly<Record<string, number>>
  readonly by: string
  readonly reason: string
  readonly expiresAt?: number
}

export interface Violation {
  readonly atMs: number
  readonly reference: string
  readonly subject: string
  readonly handle: string
  readonly policy: string
  readonly tier: string | null
  readonly rule: string | null
  readonly cost: number
  readonly retryAfterMs: number | null
  readonly reason: string
}

export interface SubjectState {
  readonly subject: string
  readonly handle: string
  readonly limits: readonly LimitState[]
  readonly override: Override | null
  readonly violations: readonly Violation[]
}

export interface WhatIf {
  readonly sample: {
    readonly subjects: number
    readonly requests: number
    readonly share: number
    readonly fromMs: number
    readonly toMs: number
  }
  readonly actual: { readonly denied: number; readonly rate: number }
  readonly whatIf: {
    readonly denied: number
    readonly rate: number
    readonly rateLow: number
    readonly rateHigh: number
    readonly subjectsDenied: number
  }
}

/** Somebody changed something: the audit trail. */
export interface Change {
  readonly atMs: number
  readonly by: string | null
  readonly what: string
}
