/**
 * Watches the stats of a fleet and sends alerts: the server that has run longest does, the others show what it
 * found.
 */

import { latencyQuantileMs } from 'headgate/internal'
import { ALERT_NAMES, type Alert, type AlertRules, evaluate, type Observation } from './alert-rules.js'
import { denialRate, type Second, sumOf } from './second.js'
import { UsualRate } from './usual-rate.js'

export interface AlertWatchOptions {
  readonly rules: AlertRules
  /** Called for each that begins to fire or is resolved. */
  tell(alert: Alert): void
  unixMs(): number
}

/** The alerts a server leaves for the others, and for its successor. */
export interface AlertNote {
  readonly watches: true
  readonly alerts: readonly Alert[]
}

export interface Looked {
  readonly second: Second
  /** How long a node of the store has been unreachable, as this process sees it. */
  readonly storeDownMs: number | null
  readonly redis: { readonly opsPerSecond: number; readonly usedMemoryBytes: number } | null
  /** The rank of this server: the lowest one sends alerts. Empty if there are no others. */
  readonly rank: string
  /** The notes of other servers by their rank. */
  readonly others: ReadonlyMap<string, AlertNote>
  /** Whether this server and the others can hear of each other; also true if there are none. */
  readonly isHeard: boolean
}

/** The seconds over which values are taken. */
const WINDOW = 60
/** With fewer requests a share is meaningless. */
const LEAST_REQUESTS = 60
/** A server that begins to lead waits for what others have sent in the meantime: notes travel once a second. */
const SETTLE_MS = 3_000
const KEPT = 100
const KEPT_MS = 86_400_000

const UNKNOWN = Object.fromEntries(ALERT_NAMES.map(name => [name, null])) as Observation
const isStoreDown = ({ name }: Alert): boolean => name === 'store-down'
const isNotStoreDown = (alert: Alert): boolean => !isStoreDown(alert)

export class AlertWatch {
  private alerts: readonly Alert[] = []
  private resolved: Alert[] = []
  private seconds: Second[] = []
  /** The Unix time in milliseconds; null while another leads, or while that is unknown. */
  private leadsSinceMs: number | null = null
  private readonly usual = new UsualRate()

  constructor(private readonly options: AlertWatchOptions) {}

  /** Returns firing and pending ones first, then resolved ones, the newest first. */
  list(): readonly Alert[] {
    return [...this.alerts.filter(({ state }) => state !== 'resolved'), ...this.resolved]
  }

  firing(): readonly Alert[] {
    return this.alerts.filter(({ state }) => state === 'firing')
  }

  note(): AlertNote {
    return { watches: true, alerts: this.alerts }
  }

  look(looked: Looked): void {
    this.seconds = [...this.seconds, looked.second].slice(-WINDOW)
    const nowMs = this.options.unixMs()
    const leader = looked.isHeard ? this.choose(looked, nowMs) : null
    const seen = this.observe(looked)
    const isSettled =
      this.leadsSinceMs !== null && nowMs - this.leadsSinceMs >= (looked.rank === '' ? 0 : SETTLE_MS)
    // Each server alerts to an unreachable store, under one name, because nobody hears of the others then.
    const observation = isSettled ? seen : { ...UNKNOWN, 'store-down': seen['store-down'] }
    const { alerts, changed } = evaluate(this.alerts, { observation, rules: this.options.rules, nowMs })
    this.alerts = leader === null ? alerts : [...alerts.filter(isStoreDown), ...leader.filter(isNotStoreDown)]
    for (const alert of changed) {
      this.options.tell(alert)
      if (alert.state === 'resolved') this.resolved = [alert, ...this.resolved].slice(0, KEPT)
    }
    this.resolved = this.resolved.filter(({ resolvedAtMs }) => (resolvedAtMs ?? 0) > nowMs - KEPT_MS)
  }

  /** Returns the alerts of the leading server, or null if this one leads and continues where another left off. */
  private choose({ rank, others }: Looked, nowMs: number): readonly Alert[] | null {
    const [first = rank] = [rank, ...others.keys()].toSorted()
    if (first !== rank) {
      this.leadsSinceMs = null
      return others.get(first)?.alerts ?? []
    }
    this.leadsSinceMs ??= nowMs
    if (nowMs - this.leadsSinceMs < SETTLE_MS) {
      const found = [...others.values()].flatMap(({ alerts }) => alerts).filter(isNotStoreDown)
      const unknown = found.filter(({ name }) => !this.alerts.some(alert => alert.name === name))
      this.alerts = [...this.alerts, ...unknown]
    }
    return null
  }

  private observe({ storeDownMs, redis }: Looked): Observation {
    const sum = sumOf(this.seconds)
    const requests = sum.allowed + sum.denied
    const perSecond = requests / Math.max(1, this.seconds.length)
    const spike = this.usual.times(perSecond)
    const isSpike = this.alerts.some(({ name }) => name === 'spike')
    if (!isSpike) this.usual.learn(perSecond)
    const isEnough = requests >= LEAST_REQUESTS
    return {
      'denial-rate': isEnough ? denialRate(sum) : 0,
      latency: isEnough ? (latencyQuantileMs(sum.latency, 0.99) ?? 0) : 0,
      'store-down': storeDownMs === null ? 0 : storeDownMs / 1000,
      spike,
      'budget-operations': redis?.opsPerSecond ?? null,
      'budget-memory': redis?.usedMemoryBytes ?? null,
    }
  }
}
