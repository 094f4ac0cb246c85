import { WORKLOADS } from '../workloads.js'
import { HEADGATE } from './results.js'
import { formatRate, formatRatio, formatShare, formatTable } from './table.js'
import { judge } from './targets.js'

/** @typedef {import('./results.js').Results} Results */

/** Writes all results of the embedded store as Markdown. @param {Results} results @param {string} heading Such as `###`. */
export function toMarkdown(results, heading) {
  const { node, cores, rounds } = results.setting
  return [
    `Node ${node}, ${cores} cores, medians of ${rounds} rounds, seconds of processor time.`,
    ...results.speed.flatMap(({ workload, inFlight, rows }) => [
      `${heading} (${workload}) ${WORKLOADS[workload].title}${inFlight > 1 ? `, ${inFlight} in flight` : ''}`,
      speedTable(rows),
    ]),
    `${heading} Memory`,
    heapTable(results),
    logHeapTable(results),
    `${heading} Targets`,
    targetTable(results),
  ].join('\n\n')
}

/** @param {string} name 'headgate, token bucket' → 'token bucket' */
function kindOf(name) {
  return name.replace('headgate, ', '')
}

/** @param {readonly import('./results.js').Row[]} rows */
function speedTable(rows) {
  return formatTable(
    ['', 'decisions/s', 'middle half', 'denied', 'of bare', ...HEADGATE.map(name => `${kindOf(name)} is`)],
    rows.map(row => [
      row.name,
      formatRate(row.perSecond.median),
      `${formatRate(row.perSecond.q1)} – ${formatRate(row.perSecond.q3)}`,
      formatShare(row.deniedShare),
      formatRatio(row.toBare.median),
      ...HEADGATE.map(ours => formatRatio(row.headgate[ours]?.median ?? 0)),
    ]),
  )
}

/** @param {Results} results */
function heapTable(results) {
  const keys = results.setting.heapKeys.toLocaleString('en')
  return formatTable(
    [`${keys} keys, one request each`, 'bytes a key', 'new keys/s'],
    results.heap.map(heap => [heap.name, heap.bytesPerKey.toFixed(0), formatRate(heap.keysPerSecond)]),
  )
}

/** @param {Results} results */
function logHeapTable({ setting, logHeap }) {
  return formatTable(
    [
      `${(setting.heapKeys / 10).toLocaleString('en')} keys, sliding-window log, requests each`,
      'bytes a key',
    ],
    logHeap.map(({ entries, bytesPerKey }) => [String(entries), bytesPerKey.toFixed(0)]),
  )
}

/** @param {Results} results */
function targetTable(results) {
  const targets = judge(results)
  const whats = [...new Set(targets.map(target => target.what))]
  return formatTable(
    ['', 'target', ...HEADGATE.map(kindOf)],
    whats.map(what => {
      const cells = targets.filter(target => target.what === what)
      const [first] = cells
      const isBytes = first?.sense === 'at most'
      /** @param {number} value */
      const format = value => (isBytes ? value.toFixed(0) : formatRatio(value))
      return [
        what,
        `${isBytes ? '≤' : '≥'} ${format(first?.wanted ?? 0)}`,
        ...HEADGATE.map(name => {
          const cell = cells.find(({ headgate }) => headgate === name)
          return cell === undefined ? '' : `${format(cell.measured)} ${cell.met ? 'met' : 'MISSED'}`
        }),
      ]
    }),
  )
}
