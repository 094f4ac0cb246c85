/** The processes of a fleet one by one, what is behind them, and the nodes of the store as they see them. */
import type { FleetReading, NodeState, ProcessReport, ProcessStatistics, Report } from 'headgate/internal'
import {
  type AnswerVitals,
  mergeAnswerVitals,
  mergeUpstreamVitals,
  type UpstreamVitals,
  upstreamQuantileMs,
  type Vitals,
} from '../metrics/vitals.js'

export interface ShownFleet {
  /** Whose: of all processes on this Redis, or of this one alone. */
  readonly scope: 'fleet' | 'process'
  /** The Unix time in milliseconds at which they were last heard of. */
  readonly asOfMs: number
  readonly live: number
  /** At most 200. */
  readonly processes: readonly ShownProcess[]
  readonly upstreams: readonly ShownUpstream[]
  /** Those that have been unreachable for somebody. */
  readonly nodes: readonly ShownNode[]
}

export interface ShownProcess {
  readonly id: string
  readonly service: string
  /** Empty if it is not known. */
  readonly version: string
  readonly configVersion: string | null
  readonly startedAtMs: number
  readonly isThis: boolean
  readonly requestsPerSecond: number
  /** Who decided them, the busiest first. */
  readonly bySource: readonly { readonly source: string; readonly perSecond: number }[]
  /** How late its event loop is: the 99th percentile of a gateway, elsewhere how late its last report was. */
  readonly lagMs: number
  /** Null for a process that is no gateway. */
  readonly rssBytes: number | null
  readonly connections: number | null
  readonly breakers: readonly NodeState[]
}

export interface ShownUpstream {
  readonly upstream: string
  readonly perSecond: Readonly<Record<string, number>>
  readonly p50Ms: number | null
  readonly p99Ms: number | null
  readonly capacity: number | null
  readonly waiting: number | null
}

export interface ShownNode {
  /** Empty if there is only one. */
  readonly node: string
  /** How many processes have a breaker for it in each state. */
  readonly open: number
  readonly halfOpen: number
  readonly closed: number
  readonly sinceMs: number
}

/** What the gateways answer themselves, of the fleet or of this process alone. */
export function answersOf(reading: FleetReading | null, own: Vitals | null): readonly AnswerVitals[] {
  if (reading === null) return own?.answers ?? []
  return mergeAnswerVitals(reading.processes.flatMap(({ note }) => vitalsOf(note)?.answers ?? []))
}

/** How many processes share a store, by service. */
export interface Processes {
  readonly live: number
  readonly services: readonly { readonly service: string; readonly live: number }[]
}

/** This process, for when no other is heard of. */
export interface OwnProcess {
  readonly id: string
  readonly service: string
  readonly read: ProcessStatistics
  /** Its last second. */
  readonly report: Report | null
  readonly vitals: Vitals | null
}

const MAX_SHOWN = 200
const REPORTED_EVERY_MS = 1_000

export function fleetOf(reading: FleetReading | null, own: OwnProcess): Omit<ShownFleet, 'scope' | 'asOfMs'> {
  const processes =
    reading === null
      ? [shownProcess({ ...aboutOwn(own), ...(own.report ?? NO_REPORT) }, own.vitals, own.id)]
      : reading.processes.map(one => shownProcess(one, vitalsOf(one.note), own.id))
  const upstreams =
    reading === null
      ? (own.vitals?.upstreams ?? [])
      : reading.processes.flatMap(({ note }) => vitalsOf(note)?.upstreams ?? [])
  return {
    live: processes.length,
    processes: processes.toSorted(byName).slice(0, MAX_SHOWN),
    upstreams: mergeUpstreamVitals(upstreams).map(shownUpstream),
    nodes: nodesOf(processes.flatMap(({ breakers }) => breakers)),
  }
}

/** If no fleet is known, this process is alone. */
export function processesOf(reading: FleetReading | null, ownService: string): Processes {
  const services = reading === null ? [ownService] : reading.processes.map(({ service }) => service)
  const live = new Map<string, number>()
  for (const service of services) live.set(service, (live.get(service) ?? 0) + 1)
  return {
    live: services.length,
    services: [...live].map(([service, count]) => ({ service, live: count })),
  }
}

type Reported = Pick<ProcessReport, 'decisions' | 'durationMs' | 'breakers'> &
  Pick<ShownProcess, 'id' | 'service' | 'version' | 'configVersion' | 'startedAtMs'>
const NO_REPORT = { decisions: [], durationMs: REPORTED_EVERY_MS }

function aboutOwn({ id, service, read }: OwnProcess) {
  const { startedAtMs, limiters, store } = read
  const configVersion = limiters[0]?.configVersion ?? null
  return { id, service, version: '', configVersion, startedAtMs, breakers: store.breakers }
}

function shownProcess(report: Reported, vitals: Vitals | null, own: string): ShownProcess {
  const { id, service, version, configVersion, startedAtMs, decisions, durationMs, breakers } = report
  const perSource = new Map<string, number>()
  for (const { source, allowed, denied } of decisions) {
    perSource.set(
      source,
      (perSource.get(source) ?? 0) + ((allowed + denied) * 1_000) / Math.max(1, durationMs),
    )
  }
  const bySource = [...perSource].map(([source, perSecond]) => ({ source, perSecond }))
  return {
    ...{ id, service, version, configVersion, startedAtMs, breakers },
    isThis: id === own,
    requestsPerSecond: bySource.reduce((sum, { perSecond }) => sum + perSecond, 0),
    bySource: bySource.toSorted((one, other) => other.perSecond - one.perSecond),
    lagMs: vitals?.lagMs ?? Math.max(0, durationMs - REPORTED_EVERY_MS),
    rssBytes: vitals?.rssBytes ?? null,
    connections: vitals?.connections ?? null,
  }
}

function byName(one: ShownProcess, other: ShownProcess): number {
  return one.service.localeCompare(other.service) || one.startedAtMs - other.startedAtMs
}

function shownUpstream({ upstream, perSecond, buckets, capacity, waiting }: UpstreamVitals): ShownUpstream {
  const [p50Ms, p99Ms] = [0.5, 0.99].map(quantile => upstreamQuantileMs(buckets, quantile))
  return { upstream, perSecond, p50Ms: p50Ms ?? null, p99Ms: p99Ms ?? null, capacity, waiting }
}

function nodesOf(breakers: readonly NodeState[]): readonly ShownNode[] {
  const nodes = new Map<string, { open: number; halfOpen: number; closed: number; sinceMs: number }>()
  for (const { node, state, sinceMs } of breakers) {
    const one = nodes.get(node) ?? { open: 0, halfOpen: 0, closed: 0, sinceMs: 0 }
    if (state === 'closed') one.closed++
    else if (state === 'open') one.open++
    else one.halfOpen++
    one.sinceMs = Math.max(one.sinceMs, sinceMs)
    nodes.set(node, one)
  }
  return [...nodes].map(([node, counts]) => ({ node, ...counts }))
}

/** What another version or somebody else has left is ignored. */
function vitalsOf(note: unknown): Vitals | null {
  const { vitals } = (note ?? {}) as { readonly vitals?: Partial<Vitals> }
  if (typeof vitals !== 'object' || vitals === null) return null
  const { lagMs, rssBytes, connections, upstreams, answers = [] } = vitals
  if (![lagMs, rssBytes, connections].every(Number.isFinite) || !Array.isArray(upstreams)) return null
  if (!upstreams.every(isUpstream) || !Array.isArray(answers)) return null
  return { ...(vitals as Vitals), answers: answers.filter(isAnswer) }
}

function isAnswer(value: unknown): boolean {
  const { reason, status, count, perSecond } = (value ?? {}) as Partial<AnswerVitals>
  return typeof reason === 'string' && typeof status === 'string' && [count, perSecond].every(Number.isFinite)
}

function isUpstream(value: unknown): boolean {
  const { upstream, perSecond, buckets } = (value ?? {}) as Partial<UpstreamVitals>
  if (typeof upstream !== 'string' || typeof perSecond !== 'object' || perSecond === null) return false
  return (
    Object.values(perSecond).every(Number.isFinite) &&
    Array.isArray(buckets) &&
    buckets.every(Number.isFinite)
  )
}
