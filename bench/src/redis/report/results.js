import { spreadOf } from '../../report/statistics.js'
import { contestantWithId } from '../contestants/contestants.js'

/** @typedef {import('../../report/statistics.js').Spread} Spread */
/** @typedef {import('../workloads.js').WorkloadId} WorkloadId */

/**
 * @typedef {object} Row
 * @property {string} id
 * @property {number[]} rates Decisions a second, of each round.
 * @property {Spread} perSecond
 * @property {number[]} p50sMs Of each round.
 * @property {number} p50Ms
 * @property {number} p99Ms
 * @property {number} nodeCpu Processor seconds of the process for a million decisions.
 * @property {number} redisCpu The same of Redis.
 * @property {number} deniedShare
 */

/** @typedef {{ workload: WorkloadId, inFlight: number, rows: Row[] }} Speed */

/**
 * @typedef {object} Results
 * @property {{ node: string, redis: string, cores: number, rounds: number, leases: boolean, load: number }} setting `load`: of the machine before the run.
 * @property {Speed[]} speed
 * @property {{ counter: number[], bucket: number[] }} ceiling Of redis-benchmark, of each round.
 * @property {{ id: string, bytesPerKey: number }[]} memory
 * @property {import('../arrivals.js').Arrival[]} arrivals
 * @property {import('../scaling.js').Scale[]} scaling
 * @property {import('../over-admission.js').Admission[]} admissions
 */

/** @param {WorkloadId} workload @param {number} inFlight @param {import('../rounds.js').Slices} slices @returns {Speed} */
export function toSpeed(workload, inFlight, slices) {
  const rows = [...slices].map(([id, list]) => {
    /** @param {(slice: import('../rounds.js').Slice) => number} figure */
    const median = figure => spreadOf(list.map(figure)).median
    const rates = list.map(({ requests, seconds }) => requests / seconds)
    return {
      ...{ id, rates, perSecond: spreadOf(rates) },
      p50sMs: list.map(slice => slice.p50Ms),
      p50Ms: median(slice => slice.p50Ms),
      p99Ms: median(slice => slice.p99Ms),
      nodeCpu: median(({ cpuSeconds, requests }) => (cpuSeconds / requests) * 1e6),
      redisCpu: median(({ redisCpuSeconds, requests }) => (redisCpuSeconds / requests) * 1e6),
      deniedShare: median(({ denied, requests }) => denied / requests),
    }
  })
  return { workload, inFlight, rows }
}

/** @param {Results} results @param {WorkloadId} workload @param {number} inFlight @returns {readonly Row[]} */
export function rowsOf(results, workload, inFlight) {
  return results.speed.find(speed => speed.workload === workload && speed.inFlight === inFlight)?.rows ?? []
}

/**
 * The fastest of the rows whose contestant is wanted.
 *
 * @param {readonly Row[]} rows
 * @param {(entry: import('../contestants/contestant.js').Entry) => boolean} wanted
 * @returns {Row | undefined}
 */
export function fastest(rows, wanted) {
  return rows
    .filter(row => wanted(contestantWithId(row.id)))
    .reduce(
      (/** @type {Row | undefined} */ best, row) =>
        row.perSecond.median > (best?.perSecond.median ?? 0) ? row : best,
      undefined,
    )
}
