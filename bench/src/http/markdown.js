import { spreadOf } from '../report/statistics.js'
import { formatRate, formatRatio, formatTable } from '../report/table.js'
import { judge } from './results.js'

/** Writes all results over HTTP as Markdown. @param {import('./results.js').Results} results @param {string} heading Such as `###`. */
export function toMarkdown({ setting, rows }, heading) {
  const { node, redis, cores, rounds, load } = setting
  return [
    `Node ${node}, Redis ${redis}, ${cores} cores, 64 connections, medians of ${rounds} rounds; the machine's load before the run was ${load.toFixed(1)}. *Processor* is what the server's process uses for a request, *left* the share of the framework without a limiter (of Hono with an empty middleware) in that.`,
    `${heading} Requests over HTTP`,
    formatTable(
      ['', 'processor µs', 'left', 'requests/s', 'middle half', 'p50 ms', 'p99 ms'],
      rows.map(row => [
        row.id,
        spreadOf(row.cpuUs).median.toFixed(0),
        formatRatio(row.share.median),
        formatRate(row.perSecond.median),
        `${formatRate(row.perSecond.q1)} – ${formatRate(row.perSecond.q3)}`,
        row.p50Ms.toFixed(2),
        row.p99Ms.toFixed(2),
      ]),
    ),
    `${heading} Targets over HTTP`,
    formatTable(
      ['', 'target', 'measured', 'verdict'],
      judge(rows).map(({ what, wanted, measured, met }) => [
        what,
        `≥ ${formatRatio(wanted)}`,
        formatRatio(measured),
        met ? 'met' : 'MISSED',
      ]),
    ),
  ].join('\n\n')
}
