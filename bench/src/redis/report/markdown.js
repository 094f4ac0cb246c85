import { ratioOf, spreadOf } from '../../report/statistics.js'
import { formatRate, formatRatio, formatShare, formatTable } from '../../report/table.js'
import { ARRIVALS_PER_SECOND } from '../arrivals.js'
import { TITLES } from '../workloads.js'
import { affordableBy } from './results.js'
import { judge, OURS } from './targets.js'

/** @typedef {import('./results.js').Results} Results */

/** Writes all results on Redis as Markdown, verdicts first. @param {Results} results @param {string} heading Such as `###`. */
export function toMarkdown(results, heading) {
  const { node, redis, cores, rounds, leases, load } = results.setting
  const parts = [
    `Node ${node}, Redis ${redis}, ${cores} cores, medians of ${rounds} rounds; *decisions/s* and every ratio are by processor time, because the machine was shared: its load before the run was ${load.toFixed(1)}.`,
    leases ? '' : 'Leases were not available in this run: (d) is without.',
    ...section(`${heading} Targets on Redis`, judge(results).length, () => targetTable(results)),
    ...results.speed.flatMap(speed => [
      `${heading} (${speed.workload}) ${TITLES[speed.workload]}, ${inFlightOf(speed.inFlight)}`,
      speedTable(speed),
    ]),
    ...section(`${heading} The script alone, redis-benchmark -P 64`, results.ceiling.counter.length, () =>
      ceilingTable(results),
    ),
    ...section(
      `${heading} Requests at random moments, ${ARRIVALS_PER_SECOND.toLocaleString('en')} a second`,
      results.arrivals.length,
      () => arrivalTable(results),
    ),
    ...section(`${heading} Memory in Redis`, results.memory.length, () => memoryTable(results)),
    ...section(`${heading} Several processes, several primaries`, results.scaling.length, () =>
      scalingTable(results),
    ),
    ...section(`${heading} Admissions of a hot key, two processes at once`, results.admissions.length, () =>
      admissionTable(results),
    ),
  ]
  return parts.filter(part => part !== '').join('\n\n')
}

/** @param {string} title @param {number} count The number of rows to show. @param {() => string} table */
function section(title, count, table) {
  return count === 0 ? [] : [title, table()]
}

/** @param {number} inFlight */
function inFlightOf(inFlight) {
  return inFlight === 1 ? 'one at a time' : `${inFlight} in flight`
}

/** @param {import('./results.js').Speed} speed */
function speedTable({ rows, inFlight }) {
  const isAlone = inFlight === 1
  const kinds = Object.entries(OURS).filter(([, id]) => rows.some(row => row.id === id))
  return formatTable(
    [
      '',
      'decisions/s',
      'on the clock',
      'denied',
      ...(isAlone ? ['cold p50 ms'] : []),
      'p50 ms',
      'p99 ms',
      'Node s/M',
      'Redis s/M',
      ...kinds.map(([kind]) => `our ${kind} is`),
    ],
    rows.map(row => [
      row.id,
      formatRate(affordableBy(row)),
      formatRate(row.perSecond.median),
      formatShare(row.deniedShare),
      ...(isAlone ? [row.coldP50Ms.toFixed(3)] : []),
      row.p50Ms.toFixed(isAlone ? 3 : 2),
      row.p99Ms.toFixed(2),
      row.nodeCpu.toFixed(1),
      row.redisCpu.toFixed(1),
      ...kinds.map(([, id]) => {
        const ours = rows.find(other => other.id === id)
        return formatRatio(ratioOf(ours?.affordable ?? [], row.affordable).median)
      }),
    ]),
  )
}

/** @param {Results} results */
function targetTable(results) {
  return formatTable(
    ['against', 'ours', 'target', 'measured', 'verdict', 'who that was'],
    judge(results).map(({ what, kind, wanted, sense, measured, met, against }) => [
      what,
      kind,
      `${sense === 'at least' ? '≥' : '≤'} ${wanted === 0 ? '0' : formatRatio(wanted)}`,
      wanted === 0 ? String(measured) : formatRatio(measured),
      met ? 'met' : 'MISSED',
      against,
    ]),
  )
}

/** @param {Results} results */
function ceilingTable({ ceiling }) {
  return formatTable(
    ['', 'decisions/s'],
    Object.entries(ceiling).map(([kind, rates]) => [kind, formatRate(spreadOf(rates).median)]),
  )
}

/** @param {Results} results */
function arrivalTable({ arrivals }) {
  return formatTable(
    ['', 'p50 ms', 'p99 ms', 'Node s/M', 'Redis s/M'],
    arrivals.map(({ id, p50Ms, p99Ms, nodeCpu, redisCpu }) => [
      id,
      p50Ms.toFixed(2),
      p99Ms.toFixed(2),
      nodeCpu.toFixed(1),
      redisCpu.toFixed(1),
    ]),
  )
}

/** @param {Results} results */
function memoryTable({ memory }) {
  return formatTable(
    ['100,000 keys, one request each', 'bytes a key'],
    memory.map(({ id, bytesPerKey }) => [id.replace(/ · .*/, ''), bytesPerKey.toFixed(0)]),
  )
}

/** @param {Results} results */
function scalingTable({ scaling }) {
  return formatTable(
    ['(a), 512 in flight in each process', 'Redis', 'processes', 'decisions/s'],
    scaling.map(({ contestant, primaries, cluster, processes, perSecond }) => [
      contestant,
      cluster ? `cluster of ${primaries}` : 'one server',
      String(processes),
      formatRate(perSecond.median),
    ]),
  )
}

/** @param {Results} results */
function admissionTable({ admissions }) {
  return formatTable(
    ['', 'asked', 'limit', 'admitted'],
    admissions.map(({ contestant, asked, limit, admitted }) => [
      contestant,
      ...[asked, limit, admitted].map(count => count.toLocaleString('en')),
    ]),
  )
}
