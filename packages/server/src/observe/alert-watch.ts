/** Watches the figures of a fleet and tells of alerts: one server of it, the others show what that one found. */

import { latencyQuantileMs } from 'headgate/statistics'
import { type Alert, type AlertRules, evaluate, type Observation } from './alert-rules.js'
import { type Second, sumOf, violationRate } from './second.js'
import { UsualRate } from './usual-rate.js'

export interface AlertWatchOptions {
  readonly rules: AlertRules
  /** Told of each that begins to fire or is over. */
  tell(alert: Alert): void
  unixMs(): number
}

/** What a server leaves for the others, and for whoever takes over. */
export interface AlertNote {
  readonly watches: true
  readonly alerts: readonly Alert[]
}

export interface Looked {
  readonly second: Second
  /** For how long a node of the store has been away, as this process sees it. */
  readonly storeDownMs: number | null
  readonly redis: { readonly opsPerSecond: number; readonly usedMemoryBytes: number } | null
  /** The notes of other servers by the name of their process, and the name of this one. */
  readonly others: ReadonlyMap<string, AlertNote>
  readonly id: string
}

/** The seconds that values are taken over. */
const WINDOW = 60
/** Of fewer requests a share says nothing. */
const LEAST_REQUESTS = 60
const KEPT = 100
const KEPT_MS = 86_400_000

export class AlertWatch {
  private alerts: readonly Alert[] = []
  private resolved: Alert[] = []
  private seconds: Second[] = []
  private readonly usual = new UsualRate()

  constructor(private readonly options: AlertWatchOptions) {}

  /** Firing and pending first, then those that are over, the newest first. */
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
    const leader = [looked.id, ...looked.others.keys()].toSorted()[0]
    // While the store is away nobody hears of the others: each tells of that, under one name.
    if (leader !== undefined && leader !== looked.id && looked.storeDownMs === null) {
      this.alerts = looked.others.get(leader)?.alerts ?? this.alerts
      return
    }
    const nowMs = this.options.unixMs()
    const observation = this.observe(looked)
    const { alerts, changed } = evaluate(this.alerts, { observation, rules: this.options.rules, nowMs })
    this.alerts = alerts
    for (const alert of changed) {
      this.options.tell(alert)
      if (alert.state === 'resolved') this.resolved = [alert, ...this.resolved].slice(0, KEPT)
    }
    this.resolved = this.resolved.filter(({ resolvedAtMs }) => (resolvedAtMs ?? 0) > nowMs - KEPT_MS)
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
      'violation-rate': isEnough ? violationRate(sum) : 0,
      latency: isEnough ? (latencyQuantileMs(sum.latency, 0.99) ?? 0) : 0,
      'store-down': storeDownMs === null ? 0 : storeDownMs / 1000,
      spike,
      'budget-operations': redis?.opsPerSecond ?? null,
      'budget-memory': redis?.usedMemoryBytes ?? null,
    }
  }
}
