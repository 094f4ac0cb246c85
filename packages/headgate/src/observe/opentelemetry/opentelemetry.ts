/**
 * Exports the same metrics through OpenTelemetry's API, for apps whose SDK collects them, and a span event for
 * every decision. The app passes its API in, so that nothing here imports it.
 */
import type { Decision } from '../../decision/decision.js'
import { invalidOption } from '../../errors/headgate-error.js'
import { systemClock } from '../../time/clock.js'
import { type Family, familiesOf, type Histogram } from '../prometheus/families.js'
import { recorderOf } from '../statistics/attached.js'
import type { Statistics } from '../statistics/statistics.js'
import { VERSION } from '../version.js'

const SCOPE = 'headgate'

type Attributes = Record<string, string | number | boolean>

interface ObservableResult {
  observe(value: number, attributes?: Attributes): void
}

interface ObservableInstrument {
  addCallback(observe: (result: ObservableResult) => void): void
  removeCallback(observe: (result: ObservableResult) => void): void
}

/** The part of a `Meter` of `@opentelemetry/api` that is used. */
interface MeterLike {
  createObservableCounter(name: string, options: { description: string }): ObservableInstrument
  createObservableGauge(name: string, options: { description: string; unit?: string }): ObservableInstrument
}

/** The part of `trace` of `@opentelemetry/api` that is used. */
interface TraceLike {
  getActiveSpan(): { addEvent(name: string, attributes: Attributes): unknown } | undefined
}

/**
 * Registers the counters and gauges of `docs/reference/metrics.md`, which the SDK reads when it collects. Returns a function
 * that unregisters them. The API has no histograms that are read: give the SDK's reader a `histogramProducer`, too.
 *
 * @example
 * import { metrics } from '@opentelemetry/api'
 * registerMetrics({ statistics, meter: metrics.getMeter('my-app') })
 */
export function registerMetrics({
  statistics,
  meter,
}: {
  readonly statistics: Statistics
  readonly meter: MeterLike
}): () => void {
  recorderOf(statistics)
  if (typeof meter?.createObservableCounter !== 'function') {
    throw invalidOption('meter', 'a meter of @opentelemetry/api', meter)
  }
  const read = (): readonly Family[] => familiesOf(statistics.read(), VERSION)
  const plain = read().filter(({ type }) => type !== 'histogram')
  const stops = plain.map(({ name, type, help: description }) => {
    const instrument =
      type === 'counter'
        ? meter.createObservableCounter(name.replace(/_total$/, ''), { description })
        : meter.createObservableGauge(name, { description })
    const observe = (result: ObservableResult): void => {
      const family = read().find(one => one.name === name)
      for (const { labels, value } of family?.samples ?? []) {
        if (typeof value === 'number') result.observe(value, labels)
      }
    }
    instrument.addCallback(observe)
    return () => instrument.removeCallback(observe)
  })
  return () => {
    for (const stop of stops) stop()
  }
}

/** What an SDK's `MetricProducer` collects, as far as histograms need it. */
export interface CollectedHistograms {
  readonly errors: never[]
  readonly resourceMetrics: {
    /** The reader has its own. */
    readonly resource: never
    readonly scopeMetrics: {
      scope: { name: string; version: string }
      metrics: HistogramData[]
    }[]
  }
}

interface HistogramData {
  descriptor: { name: string; description: string; unit: string; valueType: 1 }
  /** Cumulative. */
  aggregationTemporality: 1
  /** A histogram. */
  dataPointType: 0
  dataPoints: {
    startTime: [seconds: number, nanoseconds: number]
    endTime: [seconds: number, nanoseconds: number]
    attributes: Attributes
    value: { buckets: { boundaries: number[]; counts: number[] }; sum: number; count: number }
  }[]
}

/**
 * Creates the producer of the histograms of `docs/reference/metrics.md`, for a reader of the SDK.
 *
 * @example
 * new PeriodicExportingMetricReader({ exporter, metricProducers: [histogramProducer({ statistics })] })
 */
export function histogramProducer({ statistics }: { readonly statistics: Statistics }): {
  collect(): Promise<CollectedHistograms>
} {
  recorderOf(statistics)
  return {
    async collect() {
      const read = statistics.read()
      const startTime = hrTime(read.startedAtMs)
      const endTime = hrTime(systemClock.unixMs())
      const metrics = familiesOf(read, VERSION)
        .filter(({ type }) => type === 'histogram')
        .map(
          ({ name, help, samples }): HistogramData => ({
            descriptor: { name, description: help, unit: 's', valueType: 1 },
            aggregationTemporality: 1,
            dataPointType: 0,
            dataPoints: samples.map(({ labels, value }) => {
              const { boundsSeconds, counts, sumSeconds } = value as Histogram
              const count = counts.reduce((all, one) => all + one, 0)
              const buckets = { boundaries: [...boundsSeconds], counts: [...counts] }
              return {
                startTime,
                endTime,
                attributes: { ...labels },
                value: { buckets, sum: sumSeconds, count },
              }
            }),
          }),
        )
      const scopeMetrics = [{ scope: { name: SCOPE, version: VERSION }, metrics }]
      return { errors: [], resourceMetrics: { resource: {} as never, scopeMetrics } }
    },
  }
}

function hrTime(unixMs: number): [seconds: number, nanoseconds: number] {
  return [Math.floor(unixMs / 1_000), Math.round((unixMs % 1_000) * 1_000_000)]
}

const DECIDING = ['check', 'checkNow', 'request', 'requestNow'] as const

/**
 * Wraps a limiter so that it adds an event `rate_limit.decision` to the active span: policy, tier, rule, outcome,
 * source and reason, but never a subject.
 *
 * @example
 * import { trace } from '@opentelemetry/api'
 * const limiter = traced(createLimiter({ policies }), { trace })
 */
export function traced<Asked extends object>(
  limiter: Asked,
  { trace }: { readonly trace: TraceLike },
): Asked {
  if (typeof limiter !== 'object' || limiter === null || !('check' in limiter)) {
    throw invalidOption('limiter', 'a limiter', limiter)
  }
  const own: Partial<Record<(typeof DECIDING)[number], unknown>> = {}
  for (const name of DECIDING) {
    const decide = (limiter as Record<string, unknown>)[name]
    if (typeof decide === 'function') own[name] = withEvent(decide.bind(limiter), trace)
  }
  return new Proxy(limiter, {
    get(target, name) {
      const value = own[name as keyof typeof own] ?? Reflect.get(target, name, target)
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}

type Decide = (...args: unknown[]) => Decision | Promise<Decision>

function withEvent(decide: Decide, trace: TraceLike): Decide {
  return (...args) => {
    // Read now, because at the time of the decision another request may be active.
    const span = trace.getActiveSpan()
    const decided = decide(...args)
    if (span === undefined) return decided
    const tell = (decision: Decision): void => {
      span.addEvent('rate_limit.decision', attributesOf(decision))
    }
    if (decided instanceof Promise) decided.then(tell, () => {})
    else tell(decided)
    return decided
  }
}

function attributesOf({ allowed, policy, tier, rule, source, reason, cost }: Decision): Attributes {
  return {
    'rate_limit.allowed': allowed,
    'rate_limit.policy': policy,
    ...(tier !== null && { 'rate_limit.tier': tier }),
    ...(rule !== null && { 'rate_limit.rule': rule }),
    'rate_limit.source': source,
    'rate_limit.reason': reason,
    'rate_limit.cost': cost,
  }
}
