import { spreadOf } from '../../report/statistics.js'
import { contestantWithId } from '../contestants/contestants.js'

/** @typedef {import('../../report/statistics.js').Spread} Spread */
/** @typedef {import('../workloads.js').WorkloadId} WorkloadId */

/**
 * @typedef {object} Row
 * @property {string} id
 * @property {number[]} rates Decisions a second in each round.
 * @property {Spread} perSecond
 * @property {number[]} affordable Decisions a second that the processor time of each round is enough for: with many in
 *   flight, of Node or of Redis, whichever needs more; one at a time, of both after each other.
 * @property {number[]} p50sMs The median latency of each round.
 * @property {number} p50Ms
 * @property {number} p99Ms
 * @property {number} coldP50Ms The median just before, while code was being compiled.
 * @property {number[]} redisCpus Redis's processor time in each round.
 * @property {number} nodeCpu Processor seconds of the process per million decisions.
 * @property {number} redisCpu Processor seconds of Redis per million decisions.
 * @property {number} deniedShare
 */

/** @typedef {{ workload: WorkloadId, inFlight: number, rows: Row[] }} Speed */

/**
 * @typedef {object} Results
 * @property {{ node: string, redis: string, cores: number, rounds: number, leases: boolean, load: number }} setting `load`: the machine's load before the run.
 * @property {Speed[]} speed
 * @property {{ counter: number[], bucket: number[] }} ceiling The rate of redis-benchmark in each round.
 * @property {{ id: string, bytesPerKey: number }[]} memory
 * @property {import('../arrivals.js').Arrival[]} arrivals
 * @property {import('../scaling.js').Scale[]} scaling
 * @property {import('../over-admission.js').Admission[]} admissions
 */

/** @param {import('../rounds.js').Slice} slice @param {number} inFlight */
function affordableIn(slice, inFlight) {
  const [node, redis] = [slice.cpuSeconds / slice.requests, redisCpuOf(slice) / 1e6]
  return 1 / (inFlight === 1 ? node + redis : Math.max(node, redis))
}

/** Returns Redis's seconds per million decisions, including those before the clock started. @param {import('../rounds.js').Slice} slice */
function redisCpuOf({ redisCpuSeconds, requests, coldRequests }) {
  return (redisCpuSeconds / (requests + coldRequests)) * 1e6
}

/** @param {WorkloadId} workload @param {number} inFlight @param {import('../rounds.js').Slices} slices @returns {Speed} */
export function toSpeed(workload, inFlight, slices) {
  const rows = [...slices].map(([id, list]) => {
    /** @param {(slice: import('../rounds.js').Slice) => number} figure */
    const median = figure => spreadOf(list.map(figure)).median
    const rates = list.map(({ requests, seconds }) => requests / seconds)
    return {
      id,
      rates,
      perSecond: spreadOf(rates),
      affordable: list.map(slice => affordableIn(slice, inFlight)),
      p50sMs: list.map(slice => slice.p50Ms),
      p50Ms: median(slice => slice.p50Ms),
      p99Ms: median(slice => slice.p99Ms),
      nodeCpu: median(({ cpuSeconds, requests }) => (cpuSeconds / requests) * 1e6),
      coldP50Ms: median(slice => slice.coldP50Ms),
      redisCpu: median(redisCpuOf),
      redisCpus: list.map(redisCpuOf),
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
 * Returns the fastest row whose contestant is wanted.
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
        affordableBy(row) > (best === undefined ? 0 : affordableBy(best)) ? row : best,
      undefined,
    )
}

/** @param {Row} row */
export function affordableBy(row) {
  return spreadOf(row.affordable).median
}
