/** Computes the figures of a run from the generator's records, and judges them. Knows nothing of processes or files. */
import { quantile } from '../harness/stats.js'

/** @typedef {{ startMs: number, endMs: number, isOn: boolean }} Slice Of the run, since the traffic began, with limits on or off. */
/** @typedef {{ dueMs: Float64Array, latencyMs: Float64Array, lateMs: Float64Array, status: Uint16Array, withQuota: Uint8Array }} Requests */
/** @typedef {{ p50Ms: number, p90Ms: number, p99Ms: number, maxMs: number }} Percentiles */
/** @typedef {{ requests: number, allowed: number, denied: number, failed: number, withoutQuota: number, latency: Percentiles }} Part */
/** @typedef {{ claim: string, measured: string, isMet: boolean }} Verdict */

/**
 * @typedef {object} Figures
 * @property {Part} on The slices with limits on.
 * @property {Part} off
 * @property {number} overheadP50Ms What the limits add: the median of on − off over pairs of consecutive slices.
 * @property {number} overheadP99Ms
 * @property {number} responsesPerSecond In the measured time.
 * @property {number} requestsPerSecond Requests due per second.
 * @property {readonly { status: number, count: number }[]} failures By status, of what was neither 200 nor 429; 0 is no response.
 * @property {Percentiles} late How late the generator itself sent.
 */

/** A change of the control reaches every gateway within a second; requests due in that time count for neither side. */
const SETTLE_MS = 1_200
const LONGEST_SLICE_MS = 5_000

/** Divides the run into slices of equal length, limits on and off in turn. @param {number} fromMs @param {number} lengthMs @returns {Slice[]} */
export function slicesOf(fromMs, lengthMs) {
  const pairs = Math.max(1, Math.round(lengthMs / (2 * LONGEST_SLICE_MS)))
  const each = lengthMs / (2 * pairs)
  return Array.from({ length: 2 * pairs }, (_, index) => ({
    startMs: fromMs + index * each,
    endMs: fromMs + (index + 1) * each,
    isOn: index % 2 === 0,
  }))
}

/**
 * @param {Requests} requests
 * @param {readonly Slice[]} slices
 * @param {{ fromMs: number, toMs: number }} time The measured time.
 * @returns {Figures}
 */
export function figuresOf(requests, slices, { fromMs, toMs }) {
  const parts = slices.map(({ startMs, endMs, isOn }) => {
    const settledMs = startMs + Math.min(SETTLE_MS, (endMs - startMs) / 2)
    return { isOn, members: membersOf(requests, dueMs => dueMs >= settledMs && dueMs < endMs) }
  })
  /** @param {boolean} isOn */
  const side = isOn =>
    partOf(
      requests,
      parts.filter(part => part.isOn === isOn).flatMap(({ members }) => members),
    )
  const seconds = (toMs - fromMs) / 1000
  const measured = membersOf(requests, dueMs => dueMs >= fromMs && dueMs < toMs)
  const respondedInTime = membersOf(requests, (dueMs, index) => {
    const respondedMs = dueMs + (requests.latencyMs[index] ?? Number.NaN)
    return respondedMs >= fromMs && respondedMs < toMs
  })
  const latencies = parts.map(({ members }) => partOf(requests, members).latency)
  return {
    on: side(true),
    off: side(false),
    overheadP50Ms: overhead(latencies.map(({ p50Ms }) => p50Ms)),
    overheadP99Ms: overhead(latencies.map(({ p99Ms }) => p99Ms)),
    responsesPerSecond: respondedInTime.length / seconds,
    requestsPerSecond: measured.length / seconds,
    failures: failuresOf(requests, measured),
    late: percentilesOf(measured.map(index => requests.lateMs[index] ?? Number.NaN)),
  }
}

/**
 * Judges a run. The targets assume an otherwise idle machine; a run on a busy one misses them and says so.
 *
 * @param {Figures} figures
 * @param {{ faultyDenials: number, faults: readonly string[] }} denials
 * @param {{ connections: number, fewestOpen: number }} opened
 * @returns {Verdict[]}
 */
export function verdictsOf(figures, { faultyDenials, faults }, { connections, fewestOpen }) {
  const { on, overheadP99Ms, responsesPerSecond, requestsPerSecond } = figures
  const success = on.allowed / on.requests
  const lost = figures.failures
    .map(({ status, count }) => `${count} ${status === 0 ? 'without a response' : `with ${status}`}`)
    .join(', ')
  /** @type {[claim: string, measured: string, isMet: boolean][]} */
  const verdicts = [
    ['about 95 % succeed', `${(success * 100).toFixed(1)} %`, success >= 0.94 && success <= 0.96],
    ['none is lost', lost || '0', lost === ''],
    [
      'every denial is a proper 429',
      faultyDenials === 0 ? `${on.denied} of ${on.denied}` : `${faultyDenials} are not: ${faults.join('; ')}`,
      faultyDenials === 0 && on.denied > 0,
    ],
    [
      'all but one in a thousand are decided on Redis',
      `${on.withoutQuota} of ${on.requests} were not`,
      on.withoutQuota <= on.requests / 1_000,
    ],
    ['the limits add less than 5 ms to the p99', `${overheadP99Ms.toFixed(1)} ms`, overheadP99Ms < 5],
    ['the p99 is below 50 ms', `${on.latency.p99Ms.toFixed(1)} ms`, on.latency.p99Ms < 50],
    [
      'the rate is kept',
      `${responsesPerSecond.toFixed(0)} of ${requestsPerSecond.toFixed(0)} a second`,
      responsesPerSecond >= 0.99 * requestsPerSecond,
    ],
    ['all connections stay open', `${fewestOpen} of ${connections}`, fewestOpen >= 0.99 * connections],
  ]
  return verdicts.map(([claim, measured, isMet]) => ({ claim, measured, isMet }))
}

/** @param {Requests} requests @param {readonly number[]} members @returns {{ status: number, count: number }[]} */
function failuresOf({ status }, members) {
  /** @type {Map<number, number>} */
  const failures = new Map()
  for (const index of members) {
    const seen = status[index] ?? 0
    if (seen !== 200 && seen !== 429) failures.set(seen, (failures.get(seen) ?? 0) + 1)
  }
  return Array.from(failures, ([status, count]) => ({ status, count }))
}

/** Slices come in pairs of on and off. @param {readonly number[]} values */
function overhead(values) {
  const differences = []
  for (let pair = 0; pair + 1 < values.length; pair += 2)
    differences.push((values[pair] ?? 0) - (values[pair + 1] ?? 0))
  return quantile(
    differences.sort((one, other) => one - other),
    0.5,
  )
}

/** @param {Requests} requests @param {(dueMs: number, index: number) => boolean} belongs @returns {number[]} */
function membersOf({ dueMs }, belongs) {
  const members = []
  for (let index = 0; index < dueMs.length; index++)
    if (belongs(/** @type {number} */ (dueMs[index]), index)) members.push(index)
  return members
}

/** @param {Requests} requests @param {readonly number[]} members @returns {Part} */
function partOf({ latencyMs, status, withQuota }, members) {
  const part = { requests: members.length, allowed: 0, denied: 0, failed: 0, withoutQuota: 0 }
  for (const index of members) {
    if (status[index] === 200) part.allowed++
    else if (status[index] === 429) part.denied++
    else part.failed++
    if (withQuota[index] === 0) part.withoutQuota++
  }
  return { ...part, latency: percentilesOf(members.map(index => latencyMs[index] ?? Number.NaN)) }
}

/** Ignores values that are NaN. @param {readonly number[]} values @returns {Percentiles} */
function percentilesOf(values) {
  const sorted = values.filter(Number.isFinite).sort((one, other) => one - other)
  const at = (/** @type {number} */ share) => quantile(sorted, share)
  return { p50Ms: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99), maxMs: at(1) }
}
