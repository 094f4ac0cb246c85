/**
 * Metrics for Prometheus, standalone or on an app's existing registry.
 *
 * `prometheus({ statistics })` serves text; `registerOn(registry)` adds the same families to a registry of prom-client,
 * which reads them when it is scraped.
 */
import { invalidOption } from '../../errors/headgate-error.js'
import type { Statistics } from '../statistics/statistics.js'
import { VERSION } from '../version.js'
import { CONTENT_TYPES, expositionOf, formatFor, type TextFormat } from './exposition.js'
import { type Family, familiesOf } from './families.js'

export interface PrometheusOptions {
  /**
   * The counts to expose: the `createStatistics()` that was passed to a limiter, ruled or store, or the sum of
   * several.
   */
  readonly statistics: Pick<Statistics, 'read'>
  /** Returns more families of the program's own, at every scrape. */
  readonly more?: () => readonly Family[]
}

export interface Prometheus {
  /** Returns all families with their current values. */
  families(): readonly Family[]
  /** Returns them as text. */
  text(format?: TextFormat): string
  /** Returns the text and content type for a scraper with this `Accept` header. */
  answer(accept?: string): { readonly contentType: string; readonly body: string }
  /**
   * Adds the families to a registry of prom-client. Rejects to do it twice on the same one, which would count
   * everything twice.
   */
  registerOn(registry: PromClientRegistry): void
}

/** The part of prom-client's registry that is used. */
export interface PromClientRegistry {
  registerMetric(metric: never): void
  getSingleMetric(name: string): unknown
}

/** The result a registry expects from a metric when it is scraped. */
interface Collected {
  readonly name: string
  readonly help: string
  readonly type: Family['type']
  readonly aggregator: 'sum'
  readonly values: readonly {
    readonly labels: Readonly<Record<string, string | number>>
    readonly value: number
    readonly metricName?: string
  }[]
}

/** Creates the exporter of a process's statistics. */
export function prometheus(options: PrometheusOptions): Prometheus {
  const statistics = options?.statistics
  if (typeof statistics?.read !== 'function') {
    throw invalidOption('statistics', 'what createStatistics() returns', statistics)
  }
  const { more = () => [] } = options
  const families = (): readonly Family[] => [...familiesOf(statistics.read(), VERSION), ...more()]
  const text = (format: TextFormat = 'prometheus'): string => expositionOf(families(), format)
  return {
    families,
    text,
    answer(accept) {
      const format = formatFor(accept)
      return { contentType: CONTENT_TYPES[format], body: text(format) }
    },
    registerOn(registry) {
      for (const { name } of families()) {
        if (registry.getSingleMetric(name) === undefined) continue
        throw invalidOption('registry', `one without ${name}`, 'one that has it')
      }
      for (const { name, help, type } of families()) {
        const find = (): Family | undefined => families().find(family => family.name === name)
        const metric = {
          name,
          help,
          type,
          aggregator: 'sum',
          get: async (): Promise<Collected> =>
            collected(find() ?? { name, help, type, labels: [], samples: [] }),
          reset() {},
        }
        registry.registerMetric(metric as never)
      }
    },
  }
}

/** Converts a family to prom-client's form, in which a histogram is its buckets, its sum and its count. */
function collected({ name, help, type, samples }: Family): Collected {
  const values = samples.flatMap(({ labels, value }): Collected['values'] => {
    if (typeof value === 'number') return [{ labels, value }]
    let below = 0
    const buckets = value.counts.map((count, bucket) => {
      below += count
      const le = value.boundsSeconds[bucket] ?? '+Inf'
      return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: below }
    })
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: value.sumSeconds },
      { metricName: `${name}_count`, labels, value: below },
    ]
  })
  return { name, help, type, aggregator: 'sum', values }
}
