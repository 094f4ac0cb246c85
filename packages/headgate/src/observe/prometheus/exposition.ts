/** Formats families of metrics as text: in Prometheus's format, or in OpenMetrics, which has exemplars. */

import type { Exemplar } from '../statistics/recorder.js'
import type { Family, Histogram, Sample } from './families.js'

export type TextFormat = 'prometheus' | 'openmetrics'

/** The content type of each format. */
export const CONTENT_TYPES: Readonly<Record<TextFormat, string>> = {
  prometheus: 'text/plain; version=0.0.4; charset=utf-8',
  openmetrics: 'application/openmetrics-text; version=1.0.0; charset=utf-8',
}

/** Returns the format a scraper asks for: OpenMetrics if its `Accept` names it. */
export function formatFor(accept: string | undefined): TextFormat {
  return accept?.includes('application/openmetrics-text') ? 'openmetrics' : 'prometheus'
}

/** Formats families in one of the formats. */
export function expositionOf(families: readonly Family[], format: TextFormat): string {
  const text = families.map(family => familyText(family, format)).join('')
  return format === 'openmetrics' ? `${text}# EOF\n` : text
}

function familyText(family: Family, format: TextFormat): string {
  // In OpenMetrics `_total` belongs to the sample of a counter, not to its family.
  const isCounter = family.type === 'counter' && format === 'openmetrics'
  const name = isCounter ? family.name.replace(/_total$/, '') : family.name
  const samples = family.samples.map(sample => sampleText(family, sample, format)).join('')
  return `# HELP ${name} ${helpText(family.help)}\n# TYPE ${name} ${family.type}\n${samples}`
}

function sampleText({ name }: Family, { labels, value }: Sample, format: TextFormat): string {
  if (typeof value === 'number') return `${name}${labelText(labels)} ${numberText(value)}\n`
  return histogramText(name, labels, value, format)
}

function histogramText(
  name: string,
  labels: Sample['labels'],
  histogram: Histogram,
  format: TextFormat,
): string {
  const { boundsSeconds, counts, sumSeconds, exemplars } = histogram
  let below = 0
  const buckets = counts.map((count, bucket) => {
    below += count
    const bound = boundsSeconds[bucket]
    const le = bound === undefined ? '+Inf' : numberText(bound)
    const exemplar = format === 'openmetrics' ? exemplars[bucket] : undefined
    return `${name}_bucket${labelText({ ...labels, le })} ${below}${exemplarText(exemplar)}\n`
  })
  const sum = `${name}_sum${labelText(labels)} ${numberText(sumSeconds)}\n`
  return `${buckets.join('')}${sum}${name}_count${labelText(labels)} ${below}\n`
}

function exemplarText(exemplar: Exemplar | undefined): string {
  if (exemplar === undefined) return ''
  const { labels, seconds, atMs } = exemplar
  return ` # ${labelText(labels) || '{}'} ${numberText(seconds)} ${numberText(atMs / 1000)}`
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`)
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`
}

function escaped(value: string): string {
  return value.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('\n', '\\n')
}

function helpText(help: string): string {
  return help.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function numberText(value: number): string {
  if (value === Number.POSITIVE_INFINITY) return '+Inf'
  return String(value)
}
