import { invalidOption } from '../../errors/headgate-error.js'
import type { Control } from '../../policy/control.js'
import { type Clock, systemClock, systemTimers, type Timers } from '../../time/clock.js'
import type { ArrivalSample } from './arrivals.js'
import { attach } from './attached.js'
import { type Exemplar, type ExemplarLabels, GLOBAL, Recorder, ROUTE } from './recorder.js'
import { createReporter, type Report } from './report.js'
import type { StoreCounts } from './store-counts.js'
import type { TallyCounts } from './tally.js'

export interface StatisticsOptions {
  /** Returns labels that lead from the current request to its trace, for exemplars: `() => ({ trace_id })`. */
  readonly exemplar?: () => ExemplarLabels | null
  /** Whether to sample when subjects ask, to replay other limits on it. Default false. */
  readonly sampleArrivals?: boolean
  readonly clock?: Clock
  readonly timers?: Timers
  readonly random?: () => number
}

/**
 * The counts of a process's decisions. Pass it to `redisStore` (whose limiters then count there), or to
 * `createLimiter`. `prometheus`, `registerMetrics` and the server read it.
 */
export interface Statistics {
  /** Returns the counts since the process began. */
  read(): ProcessStatistics
  /** Returns the sampled arrivals of the last hour; empty without `sampleArrivals`. */
  arrivals(): ArrivalSample
  /** Calls `listener` once a second with the counts since the last call, until stopped. */
  onSecond(listener: (report: Report) => void): () => void
}

/** Counts since the process began. */
export interface ProcessStatistics {
  /** Unix time in milliseconds. */
  readonly startedAtMs: number
  readonly decisions: readonly TallyCounts[]
  /** Units left as last seen, of global limits and of narrower ones. */
  readonly remaining: { readonly global: number | null; readonly route: number | null }
  /** Requests that shadow limits would have denied. */
  readonly shadowDenied: number
  readonly store: StoreCounts
  readonly limiters: readonly LimiterReading[]
  readonly exemplars: readonly (Exemplar | undefined)[]
}

/** The settings of a limiter, and its counts. */
export interface LimiterReading {
  readonly control: Control
  /** How many overrides are stored. */
  readonly overrides: number
  /** Eight characters that change with the policy file; null without one. */
  readonly configVersion: string | null
  /** The Unix time in milliseconds at which it came into force; null without one. */
  readonly configLoadedAtMs: number | null
  /** Counts of limits that do not bind, by policy. */
  readonly shadow: Readonly<Record<string, { readonly wouldAllow: number; readonly wouldDeny: number }>>
  readonly candidates: Readonly<Record<string, { readonly wouldAllow: number; readonly wouldDeny: number }>>
  readonly shadowDivergence: number
  /** Bans that were seen to begin, by policy. */
  readonly bans: Readonly<Record<string, number>>
  readonly reloads: number
  readonly faults: number
  /** The limits in force, of the first 200 at most. */
  readonly limits: readonly ConfiguredLimit[]
}

/** A limit in force, scaled by the multiplier. */
export interface ConfiguredLimit {
  readonly policy: string
  readonly tier: string | null
  /** Its id, such as `log-1m`. */
  readonly limit: string
  readonly units: number
}

/**
 * Creates the statistics in which the decisions of this process are counted.
 *
 * @example
 * const statistics = createStatistics()
 * createLimiter({ statistics, policies: { api: slidingWindowLog({ limit: 100, window: '1m' }) } })
 */
export function createStatistics(options: StatisticsOptions = {}): Statistics {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption('options', 'an object', options)
  }
  const { exemplar } = options
  if (exemplar !== undefined && typeof exemplar !== 'function') {
    throw invalidOption('exemplar', 'a function', exemplar)
  }
  return new CountedStatistics(options)
}

class CountedStatistics implements Statistics {
  readonly #recorder: Recorder
  /** The limiters of the program. */
  readonly #limiters = new Set<() => LimiterReading>()
  readonly #startedAtMs: number
  readonly onSecond: Statistics['onSecond']
  readonly arrivals: Statistics['arrivals']

  constructor({
    clock = systemClock,
    timers = systemTimers,
    random = Math.random,
    exemplar,
    sampleArrivals = false,
  }: StatisticsOptions) {
    this.#recorder = new Recorder({
      clock,
      random,
      exemplar: exemplar === undefined ? null : safe(exemplar),
      sampleArrivals,
    })
    this.#startedAtMs = clock.unixMs()
    this.arrivals = () => this.#recorder.arrivals?.read(clock.unixMs()) ?? { arrivals: [], share: 1 }
    this.onSecond = createReporter(this.#recorder, clock, timers)
    attach(this, { recorder: this.#recorder, limiters: this.#limiters })
  }

  read(): ProcessStatistics {
    const { tallies, remaining, shadowDenied, store, exemplars } = this.#recorder
    return {
      startedAtMs: this.#startedAtMs,
      decisions: tallies.read(),
      remaining: { global: seen(remaining[GLOBAL]), route: seen(remaining[ROUTE]) },
      shadowDenied,
      store: store.read(),
      limiters: [...this.#limiters].map(read => read()),
      exemplars: [...exemplars],
    }
  }
}

function seen(remaining: number | undefined): number | null {
  return remaining === undefined || Number.isNaN(remaining) ? null : remaining
}

/** A function that throws yields no labels. */
function safe(exemplar: () => ExemplarLabels | null): () => ExemplarLabels | null {
  return () => {
    try {
      return exemplar()
    } catch {
      return null
    }
  }
}
