/**
 * The stats that the dashboard, the terminal and alerts read: of the last seconds, updated once a second. Of the
 * whole fleet if its processes leave theirs in Redis, and of this process alone while Redis is away.
 */
import type { RuleLimiter } from 'headgate'
import type { FleetReading, Masks, ProcessReport, StatisticsStore } from 'headgate/internal'
import {
  type LimiterReading,
  latencyQuantileMs,
  type ProcessStatistics,
  type Report,
  referenceOf,
} from 'headgate/internal'
import type { Statistics } from 'headgate/metrics'
import type { ConfigCounts } from '../admin/probes.js'
import type { Vitals } from '../metrics/vitals.js'
import type { Alert } from './alert-rules.js'
import type { AlertNote, AlertWatch, Looked } from './alert-watch.js'
import { DenialLog, type DenialQuery, type ShownDenial } from './denial-log.js'
import { RecentDeniedCallers } from './denied-callers.js'
import { answersOf, fleetOf, processesOf, type ShownFleet } from './fleet.js'
import { FleetSeconds } from './fleet-seconds.js'
import { History, type Point, type Range, type ShownHistory } from './history.js'
import { maskSubject } from './mask-subject.js'
import { mergeWouldBe } from './merge-reports.js'
import type { Budget, RedisStats } from './redis-stats.js'
import { RuleHour } from './rule-hour.js'
import { denialRate, durationSeconds, rowsBy, type Second, sumOf } from './second.js'
import type { Snapshot, WouldBe } from './snapshot.js'
import { shortcuts, storeStats } from './store-stats.js'

export interface StatsOptions {
  readonly limiter: RuleLimiter
  readonly statistics: Pick<Statistics, 'read' | 'onSecond'>
  /** Where the limits are kept. */
  readonly storeKind: 'redis' | 'memory'
  readonly service: string
  /** How subjects are shown, by the policy file in force. */
  masks(): Masks
  /** Where processes leave their counts; null if there is only this one. */
  readonly fleet: StatisticsStore | null
  /** Reads Redis's stats about itself; null without Redis. */
  readonly readRedis: (() => Promise<RedisStats>) | null
  readonly budget: Budget
  /** How this process is doing; null if it serves nothing. */
  readonly vitals: (() => Vitals) | null
  readonly alerts: AlertWatch
  configState(): ConfigCounts
  unixMs(): number
}

export interface Stats {
  snapshot(): Snapshot
  history(seconds: number): readonly Point[]
  historyOf(range: Range): Promise<ShownHistory>
  /** Returns kept denials, the newest first. */
  denials(query: DenialQuery): readonly ShownDenial[]
  rulesOfLastHour(): ReturnType<RuleHour['read']>
  fleet(): ShownFleet
  /** Returns firing and pending ones, then resolved ones. */
  alerts(): readonly Alert[]
  /** How often a caller was denied in each of the last 24 hours, the oldest first, as far as denials were kept. */
  deniedByHour(reference: string): readonly number[]
  /** Returns the stored name behind a reference; null if nobody was denied, looked for or overridden under it lately. */
  subjectOf(reference: string): string | null
  /** Returns the reference of a subject, and makes it known to `subjectOf`. */
  remember(subject: string): string
  /** Returns a subject as it may be shown. */
  show(subject: string): string
  /** Calls `listener` after every second, until stopped. */
  onSnapshot(listener: (snapshot: Snapshot) => void): () => void
  close(): void
}

/** How many subjects that operators have looked for are remembered. */
const MAX_LOOKED = 1_000
/** The seconds over which rates are taken. */
const WINDOW = 10

export function createStats(options: StatsOptions): Stats {
  const { limiter, statistics, storeKind, service, configState, unixMs, alerts } = options
  const fleet = options.fleet === null ? null : new FleetSeconds(options.fleet)
  const history = new History(options.fleet, unixMs)
  const rules = new RuleHour()
  const deniedCallers = new RecentDeniedCallers()
  const shadowCallers = new RecentDeniedCallers()
  const log = new DenialLog(unixMs)
  /** Subjects that operators have looked for, by reference, the one longest ago first. */
  const looked = new Map<string, string>()
  const listeners = new Set<(snapshot: Snapshot) => void>()
  let window: Second[] = []
  let heardOf: FleetReading | null = null
  let scope: Snapshot['scope'] = 'process'
  let redis: RedisStats | null = null
  let lastReport: Report | null = null
  let vitals: Vitals | null = null
  let isReading = false
  /** Whether denials from before this server started are still being read. */
  let isCatchingUp = true
  /** Since when the fleet could not be read; null while it can. */
  let unheardSinceMs: number | null = null
  const show = (subject: string): string => maskSubject(subject, options.masks())

  function heard(second: Second): void {
    window = [...window, second].slice(-WINDOW)
    history.add(second, options.fleet === null || scope === 'fleet')
    rules.add(second)
    deniedCallers.add(second.atMs, second)
    shadowCallers.add(second.atMs, second.shadowCallers)
    if (scope === 'process') log.addOwn(second.denials)
    else log.add(second.denials)
    watchAlerts(second)
    if (listeners.size === 0) return
    const now = snapshot()
    for (const listener of listeners) listener(now)
  }

  function watchAlerts(second: Second): void {
    const { state, sinceMs } = storeStats(window, aboutStore())
    alerts.look({
      second,
      redis,
      ...serversOf(scope === 'fleet' ? heardOf : null, options.fleet?.id ?? ''),
      storeDownMs: state === 'down' ? unixMs() - sinceMs : null,
      ...(options.fleet === null && { isHeard: true }),
    })
    options.fleet?.setNote({ ...alerts.note(), vitals })
  }

  /** Takes this process's own second, or that of the fleet if it can be read. */
  async function passed(report: Report): Promise<void> {
    lastReport = report
    vitals = options.vitals?.() ?? null
    if (fleet === null) return heard({ ...report, atMs: unixMs() })
    if (isReading) return
    isReading = true
    try {
      const { reading, report: all } = await fleet.next()
      if (isCatchingUp) deniedCallers.remember(reading.denials.filter(isBefore(reading.nowMs - 1_000)))
      isCatchingUp = reading.denials.length > 0 && isCatchingUp
      heardOf = reading
      scope = 'fleet'
      redis = (await options.readRedis?.()) ?? null
      unheardSinceMs = null
      heard({ ...all, atMs: unixMs() })
    } catch {
      // The last stats of the others are kept and shown with their age; our own are always known.
      scope = 'process'
      unheardSinceMs ??= heardOf === null ? statistics.read().startedAtMs : asOf(unixMs())
      heard({ ...report, atMs: unixMs() })
    } finally {
      isReading = false
    }
  }

  // From the first report on: a server without a note is not recognised as one.
  options.fleet?.setNote(alerts.note())
  const stop = statistics.onSecond(report => void passed(report))

  function aboutStore() {
    const { startedAtMs, store: total } = statistics.read()
    return { kind: storeKind, startedAtMs, total, unheardSinceMs, nowMs: unixMs() }
  }

  function snapshot(): Snapshot {
    const read = statistics.read()
    const [gateReading] = read.limiters
    const atMs = unixMs()
    const overridden = new Set(
      limiter.overrides.list().flatMap(one => ('subject' in one ? [one.subject] : [])),
    )
    const shown = { nowMs: atMs, show, isOverridden: (subject: string) => overridden.has(subject) }
    const top = deniedCallers.top(shown)
    const { config: state, rejectedConfigs } = configState()
    return {
      atMs,
      scope,
      asOfMs: asOf(atMs),
      service,
      startedAtMs: read.startedAtMs,
      windowMs: WINDOW * 1000,
      now: ratesOf(window),
      totals: totalsOf(read),
      byTier: rowsBy('tier', window),
      byPolicy: rowsBy('policy', window),
      bySource: rowsBy('source', window),
      byRule: rowsBy('rule', window),
      gatewayAnswers: answersOf(scope === 'fleet' ? heardOf : null, vitals),
      deniedCallers: top.deniedCallers,
      deniedCallersErrorAtMost: top.errorAtMost,
      processes: processesOf(heardOf, service),
      store: { ...storeStats(window, aboutStore()), redis, budget: options.budget },
      shortcuts: shortcuts(window),
      shadow: wouldBe(counted('shadow')),
      candidates: wouldBe(counted('candidates')),
      shadowCallers: shadowCallers.top(shown).deniedCallers,
      divergence: gateReading?.shadowDivergence ?? 0,
      control: limiter.control.get(),
      lost: lostOf(limiter),
      overrides: gateReading?.overrides ?? 0,
      config: {
        version: gateReading?.configVersion ?? '',
        loadedAtMs: gateReading?.configLoadedAtMs ?? read.startedAtMs,
        state,
        reloads: gateReading?.reloads ?? 0,
        rejected: rejectedConfigs,
      },
      alerts: alerts.firing(),
    }
  }

  /** What limits that do not bind would have done: to the fleet, if it can be heard of. */
  function counted(which: 'shadow' | 'candidates'): LimiterReading['shadow'] {
    if (scope === 'fleet' && heardOf !== null)
      return mergeWouldBe(heardOf.processes.map(one => one[which] ?? {}))
    return statistics.read().limiters[0]?.[which] ?? {}
  }

  function overridden(reference: string): string | null {
    for (const override of limiter.overrides.list()) {
      if ('subject' in override && referenceOf(override.subject) === reference) return override.subject
    }
    return null
  }

  /** Returns when the stats were last updated: the fleet's, if there is one. */
  function asOf(nowMs: number): number {
    return heardOf?.nowMs ?? window.at(-1)?.atMs ?? nowMs
  }

  return {
    snapshot,
    history: seconds => history.last(seconds),
    historyOf: range => history.read(range),
    denials: query => log.find(query, show),
    rulesOfLastHour: () => rules.read(unixMs()),
    fleet() {
      const own = {
        id: options.fleet?.id ?? '',
        service,
        read: statistics.read(),
        report: lastReport,
        vitals,
      }
      return { scope, asOfMs: asOf(unixMs()), ...fleetOf(heardOf, own) }
    },
    alerts: () => alerts.list(),
    deniedByHour(reference) {
      const hours = log.deniedByHour(reference)
      // Those of a busy minute are counted with the next one that is kept; who is denied most is known sooner.
      const last = Math.max(hours.at(-1) ?? 0, deniedCallers.deniedOf(reference))
      return [...hours.slice(0, -1), last]
    },
    subjectOf: reference =>
      looked.get(reference) ??
      deniedCallers.subjectOf(reference) ??
      shadowCallers.subjectOf(reference) ??
      log.subjectOf(reference) ??
      overridden(reference),
    remember(subject) {
      const reference = referenceOf(subject)
      looked.delete(reference)
      looked.set(reference, subject)
      if (looked.size > MAX_LOOKED) looked.delete(looked.keys().next().value as string)
      return reference
    },
    show,
    onSnapshot(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    close() {
      stop()
      listeners.clear()
    },
  }
}

function lostOf(limiter: RuleLimiter): Snapshot['lost'] {
  const lost = limiter.control.lost()
  return lost === null ? null : { control: lost.control !== null, overrides: lost.overrides.length }
}

/** Denials of the last second are in the reports of those who denied. */
function isBefore(timeMs: number): (denial: { readonly atMs: number }) => boolean {
  return ({ atMs }) => atMs < timeMs
}

function ratesOf(seconds: readonly Second[]): Snapshot['now'] {
  const during = durationSeconds(seconds)
  const sum = sumOf(seconds)
  return {
    allowedPerSecond: sum.allowed / during,
    deniedPerSecond: sum.denied / during,
    denialRate: denialRate(sum),
    overheadMs: { p50: latencyQuantileMs(sum.latency, 0.5), p99: latencyQuantileMs(sum.latency, 0.99) },
    nearLimitPerSecond: sum.nearLimit / during,
    shadowDeniedPerSecond: seconds.reduce((all, { shadowDenied }) => all + shadowDenied, 0) / during,
  }
}

function totalsOf({ decisions }: ProcessStatistics): Snapshot['totals'] {
  return {
    allowed: decisions.reduce((sum, { allowed }) => sum + allowed, 0),
    denied: decisions.reduce((sum, { denied }) => sum + denied, 0),
  }
}

function wouldBe(byPolicy: LimiterReading['shadow']): WouldBe[] {
  return Object.entries(byPolicy).map(([policy, counts]) => ({ policy, ...counts }))
}

/**
 * Returns this server and the findings of the others, the one that has run longest first; invalid notes are
 * ignored.
 */
function serversOf(reading: FleetReading | null, own: string): Pick<Looked, 'rank' | 'others' | 'isHeard'> {
  const processes = reading?.processes ?? []
  const rankOf = ({ id, startedAtMs }: ProcessReport): string =>
    `${String(startedAtMs).padStart(16, '0')} ${id}`
  const itself = processes.find(({ id }) => id === own)
  const notes = processes.flatMap((process): [string, AlertNote][] => {
    const { id, note } = process
    const isNote = typeof note === 'object' && note !== null && 'watches' in note && 'alerts' in note
    return isNote && id !== own && Array.isArray(note.alerts) ? [[rankOf(process), note as AlertNote]] : []
  })
  return {
    rank: itself === undefined ? '' : rankOf(itself),
    others: new Map(notes),
    isHeard: itself !== undefined,
  }
}
