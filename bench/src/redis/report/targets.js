import { ratioOf } from '../../report/statistics.js'
import { fastest, rowsOf } from './results.js'

/** @typedef {import('./results.js').Results} Results */
/** @typedef {import('./results.js').Row} Row */
/** @typedef {import('../contestants/contestant.js').Entry} Entry */

/**
 * @typedef {object} Target
 * @property {string} what
 * @property {Kind} kind The limit it was measured with.
 * @property {string} against
 * @property {number} wanted
 * @property {'at least' | 'at most'} sense
 * @property {number} measured
 * @property {boolean} met
 */

/** @typedef {(entry: Entry) => boolean} Choice */

/** @typedef {'counter' | 'bucket' | 'log'} Kind */

/** @type {Readonly<Record<Kind, string>>} */
export const OURS = {
  counter: 'headgate, sliding-window counter · node-redis',
  bucket: 'headgate, token bucket · node-redis',
  log: 'headgate, sliding-window log · node-redis',
}

/** Selects a peer set up as in its manual. @type {Choice} */
const documented = ({ role, client }) => role === 'peer' && client !== 'node-redis, tuned'
/** @type {Choice} */
const tuned = ({ role, client }) => role === 'peer' && client === 'node-redis, tuned'

/** Compares with the fastest tuned peer with 512, 64 and 1 in flight; (a) with each length of window. */
const AGAINST_TUNED = /** @type {const} */ ({
  a: { counter: [1.8, 1.5, 0.8], bucket: [1.1, 1.1, 0.8] },
  b: { counter: [2, 1.6, 0.8], bucket: [1.3, 1.1, 0.8] },
  e: { counter: [2, 1.5, 1] },
  log: { log: [2, 1.5, 1] },
})
const LEVELS = [512, 64, 1]

/** @typedef {{ workload: import('../workloads.js').WorkloadId, inFlight: number, what: string, wanted: number, choice: Choice }} Ratio */

/** @param {Kind} kind @returns {Ratio[]} */
function ratiosFor(kind) {
  return [
    ...Object.entries(AGAINST_TUNED).flatMap(([base, byKind]) => {
      const wanted = /** @type {Partial<Record<Kind, readonly number[]>>} */ (byKind)[kind] ?? []
      return workloadsOf(base).flatMap(workload =>
        wanted.map((times, index) => againstTuned(workload, Number(LEVELS[index]), times)),
      )
    }),
    ...(kind === 'log' ? [] : OTHERS),
  ]
}

/** @param {string} base @returns {import('../workloads.js').WorkloadId[]} */
function workloadsOf(base) {
  return base === 'a' ? ['a', 'a1s', 'a1h'] : [/** @type {import('../workloads.js').WorkloadId} */ (base)]
}

/** @param {import('../workloads.js').WorkloadId} workload @param {number} inFlight @param {number} wanted @returns {Ratio} */
function againstTuned(workload, inFlight, wanted) {
  return { workload, inFlight, what: 'fastest tuned peer', wanted, choice: tuned }
}

/** @type {readonly Ratio[]} */
const OTHERS = [
  { workload: 'a', inFlight: 512, what: 'fastest peer', wanted: 1.8, choice: documented },
  {
    workload: 'c',
    inFlight: 512,
    what: 'fastest tuned peer without a local block',
    wanted: 6,
    choice: entry => tuned(entry) && !entry.localBlock,
  },
  {
    workload: 'c',
    inFlight: 512,
    what: 'rate-limiter-flexible with inMemoryBlock',
    wanted: 2.5,
    choice: entry => entry.name === 'rate-limiter-flexible, inMemoryBlock',
  },
  { workload: 'd', inFlight: 512, what: 'fastest peer', wanted: 8, choice: documented },
  { workload: 'd', inFlight: 512, what: 'fastest tuned peer', wanted: 3, choice: tuned },
]

const EMPTY_SCRIPT = 'empty script · node-redis, tuned'
const RATE_LIMIT_REDIS = 'rate-limit-redis (express-rate-limit) · node-redis, tuned'
const OF_EMPTY_P50 = 1.5
/** Redis's processor time per decision as a share of rate-limit-redis's: with 64 decisions in a call, and with one. */
const OF_REDIS_TIME = /** @type {const} */ ([
  [512, 0.6],
  [1, 1.3],
])

/** Lists the targets on Redis and whether they were reached. Omits targets that were not measured. @param {Results} results */
export function judge(results) {
  return /** @type {const} */ (['counter', 'bucket', 'log']).flatMap(kind => [
    ...ofSpeed(results, kind),
    ...ofRoundTrip(results, kind),
    ...ofRedisTime(results, kind),
    ...ofAdmission(results, kind),
  ])
}

/** @param {Results} results @param {Kind} kind @returns {Target[]} */
function ofSpeed(results, kind) {
  return ratiosFor(kind).flatMap(({ workload, inFlight, what, wanted, choice }) => {
    const rows = rowsOf(results, workload, inFlight)
    const ours = rows.find(row => row.id === OURS[kind])
    const other = fastest(rows, choice)
    if (ours === undefined || other === undefined) return []
    const measured = ratioOf(ours.affordable, other.affordable).median
    return [atLeast(`(${workload}) ${inFlight} in flight, ${what}`, kind, other.id, wanted, measured)]
  })
}

/** @param {Results} results @param {Kind} kind @returns {Target[]} */
function ofRoundTrip(results, kind) {
  const rows = rowsOf(results, 'a', 1)
  const ours = rows.find(row => row.id === OURS[kind])
  const empty = rows.find(row => row.id === EMPTY_SCRIPT)
  if (kind !== 'counter' || ours === undefined || empty === undefined) return []
  const measured = ratioOf(ours.p50sMs, empty.p50sMs).median
  return [atMost('(a) 1 in flight, p50 of an empty script', kind, empty.id, OF_EMPTY_P50, measured)]
}

/** @param {Results} results @param {Kind} kind @returns {Target[]} */
function ofRedisTime(results, kind) {
  if (kind !== 'counter') return []
  return OF_REDIS_TIME.flatMap(([inFlight, wanted]) => {
    const rows = rowsOf(results, 'a', inFlight)
    const ours = rows.find(row => row.id === OURS[kind])
    const other = rows.find(row => row.id === RATE_LIMIT_REDIS)
    if (ours === undefined || other === undefined) return []
    const measured = ratioOf(ours.redisCpus, other.redisCpus).median
    return [atMost(`(a) ${inFlight} in flight, processor time of Redis`, kind, other.id, wanted, measured)]
  })
}

/** @param {Results} results @param {Kind} kind @returns {Target[]} */
function ofAdmission(results, kind) {
  const admission = results.admissions.find(({ contestant }) => contestant === OURS[kind])
  if (admission === undefined) return []
  const over = Math.max(0, admission.admitted - admission.limit)
  return [atMost('(d) admitted over the limit, two processes', kind, 'the limit', 0, over)]
}

/** @param {string} what @param {Kind} kind @param {string} against @param {number} wanted @param {number} measured @returns {Target} */
function atLeast(what, kind, against, wanted, measured) {
  return { what, kind, against, wanted, sense: 'at least', measured, met: measured >= wanted }
}

/** @param {string} what @param {Kind} kind @param {string} against @param {number} wanted @param {number} measured @returns {Target} */
function atMost(what, kind, against, wanted, measured) {
  return { what, kind, against, wanted, sense: 'at most', measured, met: measured <= wanted }
}
