import { ratioOf, spreadOf } from '../../report/statistics.js'
import { fastest, rowsOf } from './results.js'

/** @typedef {import('./results.js').Results} Results */
/** @typedef {import('./results.js').Row} Row */
/** @typedef {import('../contestants/contestant.js').Entry} Entry */

/**
 * @typedef {object} Target
 * @property {string} what
 * @property {'counter' | 'bucket'} kind The limit it was measured with.
 * @property {string} against
 * @property {number} wanted
 * @property {'at least' | 'at most'} sense
 * @property {number} measured
 * @property {boolean} met
 */

/** @typedef {(entry: Entry) => boolean} Choice */

/** @type {Readonly<Record<'counter' | 'bucket', string>>} */
export const OURS = {
  counter: 'headgate, sliding-window counter · node-redis',
  bucket: 'headgate, token bucket · node-redis',
}

/** A peer as its manual has it. @type {Choice} */
const documented = ({ role, client }) => role === 'peer' && client !== 'node-redis, tuned'
/** @type {Choice} */
const tuned = ({ role, client }) => role === 'peer' && client === 'node-redis, tuned'

/** @type {readonly { workload: 'a' | 'b' | 'c' | 'd' | 'e', what: string, wanted: number, choice: (kind: string) => Choice }[]} */
const RATIOS = [
  {
    ...{ workload: 'a', what: 'fastest peer with the same algorithm', wanted: 3 },
    choice: kind => entry => documented(entry) && entry.algorithm === kind,
  },
  { workload: 'a', what: 'fastest peer', wanted: 1.8, choice: () => documented },
  { workload: 'a', what: 'fastest tuned peer', wanted: 1, choice: () => tuned },
  { workload: 'b', what: 'fastest peer', wanted: 4, choice: () => documented },
  { workload: 'b', what: 'fastest tuned peer', wanted: 2.5, choice: () => tuned },
  {
    ...{ workload: 'c', what: 'fastest tuned peer without a local block', wanted: 6 },
    choice: () => entry => tuned(entry) && !entry.localBlock,
  },
  {
    ...{ workload: 'c', what: 'rate-limiter-flexible with inMemoryBlock', wanted: 2.5 },
    choice: () => entry => entry.name === 'rate-limiter-flexible, inMemoryBlock',
  },
  { workload: 'd', what: 'fastest peer', wanted: 8, choice: () => documented },
  { workload: 'd', what: 'fastest tuned peer', wanted: 3, choice: () => tuned },
  { workload: 'e', what: 'fastest peer', wanted: 3, choice: () => documented },
]

const IN_FLIGHT = 512
const OF_CEILING = 0.8
const OF_INCR_P50 = 1.15

/** What was to be reached on Redis, and whether it was; nothing is said of what was not measured. @param {Results} results */
export function judge(results) {
  return /** @type {const} */ (['counter', 'bucket']).flatMap(kind => [
    ...ofSpeed(results, kind),
    ...ofCeiling(results, kind),
    ...ofRoundTrip(results, kind),
    ...ofAdmission(results, kind),
  ])
}

/** @param {Results} results @param {'counter' | 'bucket'} kind @returns {Target[]} */
function ofSpeed(results, kind) {
  return RATIOS.flatMap(({ workload, what, wanted, choice }) => {
    const rows = rowsOf(results, workload, IN_FLIGHT)
    const ours = rows.find(row => row.id === OURS[kind])
    const other = fastest(rows, choice(kind))
    if (ours === undefined || other === undefined) return []
    const measured = ratioOf(ours.rates, other.rates).median
    return [atLeast(`(${workload}) ${what}`, kind, other.id, wanted, measured)]
  })
}

/** @param {Results} results @param {'counter' | 'bucket'} kind @returns {Target[]} */
function ofCeiling(results, kind) {
  const ours = rowsOf(results, 'a', IN_FLIGHT).find(row => row.id === OURS[kind])
  if (ours === undefined || results.ceiling[kind].length === 0) return []
  const measured = ours.perSecond.median / spreadOf(results.ceiling[kind]).median
  return [atLeast('(a) our script in redis-benchmark -P 64', kind, 'redis-benchmark', OF_CEILING, measured)]
}

/** @param {Results} results @param {'counter' | 'bucket'} kind @returns {Target[]} */
function ofRoundTrip(results, kind) {
  const rows = rowsOf(results, 'a', 1)
  const ours = rows.find(row => row.id === OURS[kind])
  const incr = rows.find(row => row.id === 'bare INCR · node-redis, tuned')
  if (ours === undefined || incr === undefined) return []
  const measured = ratioOf(ours.p50sMs, incr.p50sMs).median
  return [atMost('p50 of one request at a time, of a bare INCR', kind, incr.id, OF_INCR_P50, measured)]
}

/** @param {Results} results @param {'counter' | 'bucket'} kind @returns {Target[]} */
function ofAdmission(results, kind) {
  const admission = results.admissions.find(({ contestant }) => contestant === OURS[kind])
  if (admission === undefined) return []
  const over = Math.max(0, admission.admitted - admission.limit)
  return [atMost('(d) admitted over the limit, two processes', kind, 'the limit', 0, over)]
}

/** @param {string} what @param {'counter' | 'bucket'} kind @param {string} against @param {number} wanted @param {number} measured @returns {Target} */
function atLeast(what, kind, against, wanted, measured) {
  return { what, kind, against, wanted, sense: 'at least', measured, met: measured >= wanted }
}

/** @param {string} what @param {'counter' | 'bucket'} kind @param {string} against @param {number} wanted @param {number} measured @returns {Target} */
function atMost(what, kind, against, wanted, measured) {
  return { what, kind, against, wanted, sense: 'at most', measured, met: measured <= wanted }
}
