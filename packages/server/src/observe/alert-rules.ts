/**
 * When operators are alerted. Each alert is a value and a threshold; it fires when the value has been beyond the
 * threshold for `holdMs`, and is resolved when it has been within it for `resolveMs`.
 */
import type { Budget } from './redis-stats.js'

export const ALERT_NAMES = [
  'denial-rate',
  'latency',
  'store-down',
  'spike',
  'budget-operations',
  'budget-memory',
] as const
export type AlertName = (typeof ALERT_NAMES)[number]

export interface AlertRule {
  readonly threshold: number
  /** How long the value must be beyond it. */
  readonly holdMs: number
  /** How long it must be within it again. */
  readonly resolveMs: number
}

/** Null: not watched. */
export type AlertRules = Readonly<Record<AlertName, AlertRule | null>>

export const DEFAULT_RULES: AlertRules = {
  /** A tenth of the requests is rejected. */
  'denial-rate': { threshold: 0.1, holdMs: 60_000, resolveMs: 120_000 },
  /** The 99th percentile of deciding, in milliseconds. */
  latency: { threshold: 50, holdMs: 60_000, resolveMs: 120_000 },
  /** Seconds for which a node of the store has been unreachable. */
  'store-down': { threshold: 60, holdMs: 0, resolveMs: 10_000 },
  /** Times the usual rate. */
  spike: { threshold: 5, holdMs: 30_000, resolveMs: 60_000 },
  /** Operations a second, and bytes, of Redis: only if a budget is set. */
  'budget-operations': null,
  'budget-memory': null,
}

/** When operators are alerted, and how. */
export interface AlertOptions {
  readonly rules: AlertRules
  readonly budget: Budget
  /** The webhook to call; null if only the log and the stats show alerts. */
  readonly webhook: string | null
}

/** The value each alert watches; null if unknown, which neither starts an alert nor ends it. */
export type Observation = Readonly<Record<AlertName, number | null>>

export interface Alert {
  readonly id: AlertName
  readonly name: AlertName
  readonly state: 'pending' | 'firing' | 'resolved'
  /** The Unix time in milliseconds since when it has been beyond the threshold. */
  readonly sinceMs: number
  readonly resolvedAtMs: number | null
  readonly value: number
  readonly threshold: number
  readonly text: string
  /** Since when the value has been within the threshold again; null while it is not. */
  readonly withinSinceMs: number | null
}

/** Returns the alerts after another look, and those that have begun to fire or were resolved. */
export function evaluate(
  alerts: readonly Alert[],
  seen: { readonly observation: Observation; readonly rules: AlertRules; readonly nowMs: number },
): { readonly alerts: readonly Alert[]; readonly changed: readonly Alert[] } {
  const next: Alert[] = []
  const changed: Alert[] = []
  for (const name of ALERT_NAMES) {
    const before = alerts.find(alert => alert.name === name && alert.state !== 'resolved')
    const after = step(name, before, seen)
    if (after === null) continue
    next.push(after)
    const isNews = after.state !== before?.state && after.state !== 'pending'
    if (isNews) changed.push(after)
  }
  return { alerts: next, changed }
}

function step(
  name: AlertName,
  before: Alert | undefined,
  { observation, rules, nowMs }: Parameters<typeof evaluate>[1],
): Alert | null {
  const rule = rules[name]
  const value = observation[name]
  if (rule === null) return null
  if (value === null) return before ?? null
  const isBeyond = name === 'store-down' ? value >= rule.threshold : value > rule.threshold
  if (!isBeyond) return before === undefined ? null : within(before, { value, rule, nowMs })
  const sinceMs = before?.sinceMs ?? nowMs
  const isFiring = before?.state === 'firing' || nowMs - sinceMs >= rule.holdMs
  const state = isFiring ? 'firing' : 'pending'
  return alertOf(name, { state, sinceMs, value, threshold: rule.threshold })
}

/** One that has not fired yet is dropped; one that has is resolved after a quiet while. */
function within(
  before: Alert,
  { value, rule, nowMs }: { readonly value: number; readonly rule: AlertRule; readonly nowMs: number },
): Alert | null {
  if (before.state === 'pending') return null
  const withinSinceMs = before.withinSinceMs ?? nowMs
  if (nowMs - withinSinceMs < rule.resolveMs) return { ...before, value, withinSinceMs }
  const { name, sinceMs } = before
  const over = alertOf(name, { state: 'resolved', sinceMs, value, threshold: rule.threshold })
  return { ...over, resolvedAtMs: nowMs }
}

function alertOf(name: AlertName, about: Pick<Alert, 'state' | 'sinceMs' | 'value' | 'threshold'>): Alert {
  return { id: name, name, ...about, resolvedAtMs: null, withinSinceMs: null, text: TEXTS[name](about) }
}

type Told = Pick<Alert, 'state' | 'value' | 'threshold'>

const percent = (share: number): string => `${Math.round(share * 1000) / 10} %`
const megabytes = (bytes: number): string => `${Math.round(bytes / 100_000) / 10} MB`
const rounded = (value: number): string => String(Math.round(value * 10) / 10)

const TEXTS: Readonly<Record<AlertName, (told: Told) => string>> = {
  'denial-rate': ({ value, threshold }) =>
    `${percent(value)} of requests are denied (threshold ${percent(threshold)})`,
  latency: ({ value, threshold }) =>
    `deciding takes ${rounded(value)} ms at the 99th percentile (threshold ${rounded(threshold)} ms)`,
  'store-down': ({ value, state }) =>
    state === 'resolved' ? 'the store answers again' : `the store has been away for ${Math.round(value)} s`,
  spike: ({ value, threshold }) =>
    `${rounded(value)} times as many requests as usual (threshold ${rounded(threshold)})`,
  'budget-operations': ({ value, threshold }) =>
    `Redis carries out ${Math.round(value)} operations a second (budget ${Math.round(threshold)})`,
  'budget-memory': ({ value, threshold }) =>
    `Redis uses ${megabytes(value)} of memory (budget ${megabytes(threshold)})`,
}
