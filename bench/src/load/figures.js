/** Computes figures from the generator's records. Knows nothing of processes or files. */
import { isSettled } from './slices.js'

/** @typedef {import('./slices.js').Slice} Slice */
/** @typedef {{ dueMs: Float64Array, latencyMs: Float64Array, lateMs: Float64Array, status: Uint16Array, withQuota: Uint8Array }} Requests */
/** @typedef {{ p50Ms: number, p90Ms: number, p99Ms: number, maxMs: number }} Percentiles */
/** @typedef {{ requests: number, allowed: number, refused: number, failed: number, withoutQuota: number, latency: Percentiles }} Part */
/** @typedef {{ allowed: number, refused: number, failed: number } & Percentiles} Second */

/**
 * @typedef {object} Figures
 * @property {Part} on The slices with limits on.
 * @property {Part} off
 * @property {number} overheadP50Ms Overhead of the limits: the median of on − off over pairs of consecutive slices.
 * @property {number} overheadP99Ms
 * @property {number} answersPerSecond In the measured time.
 * @property {number} requestsPerSecond Requests due per second.
 * @property {readonly { status: number, count: number }[]} failures Counts by status of what was neither an answer nor a refusal; 0 is no answer.
 * @property {Percentiles} late How late the generator itself sent.
 * @property {Second[]} seconds
 */

/**
 * @param {Requests} requests
 * @param {readonly Slice[]} slices
 * @param {{ fromMs: number, toMs: number }} time The measured time.
 * @returns {Figures}
 */
export function figuresOf(requests, slices, { fromMs, toMs }) {
  const parts = slices.map(slice => ({
    slice,
    members: membersOf(requests, dueMs => isSettled(slice, dueMs)),
  }))
  const side = (/** @type {boolean} */ isOn) =>
    partOf(
      requests,
      parts.filter(({ slice }) => slice.isOn === isOn).flatMap(({ members }) => members),
    )
  const lengthSeconds = (toMs - fromMs) / 1000
  const measured = membersOf(requests, dueMs => dueMs >= fromMs && dueMs < toMs)
  const answeredInTime = membersOf(requests, (dueMs, index) => {
    const answeredMs = dueMs + (requests.latencyMs[index] ?? Number.NaN)
    return answeredMs >= fromMs && answeredMs < toMs
  })
  const p99s = parts.map(({ members }) => partOf(requests, members).latency)
  return {
    on: side(true),
    off: side(false),
    overheadP50Ms: overhead(p99s.map(({ p50Ms }) => p50Ms)),
    overheadP99Ms: overhead(p99s.map(({ p99Ms }) => p99Ms)),
    answersPerSecond: answeredInTime.length / lengthSeconds,
    requestsPerSecond: measured.length / lengthSeconds,
    failures: failuresOf(requests, measured),
    late: percentilesOf(measured.map(index => requests.lateMs[index] ?? Number.NaN)),
    seconds: secondsOf(requests, fromMs, Math.round(lengthSeconds)),
  }
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
  differences.sort((one, other) => one - other)
  return differences[Math.floor(differences.length / 2)] ?? Number.NaN
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
  const part = { requests: members.length, allowed: 0, refused: 0, failed: 0, withoutQuota: 0 }
  for (const index of members) {
    if (status[index] === 200) part.allowed++
    else if (status[index] === 429) part.refused++
    else part.failed++
    if (withQuota[index] === 0) part.withoutQuota++
  }
  return { ...part, latency: percentilesOf(members.map(index => latencyMs[index] ?? Number.NaN)) }
}

/** @param {Requests} requests @param {number} fromMs @param {number} count @returns {Second[]} */
function secondsOf(requests, fromMs, count) {
  /** @type {number[][]} */
  const members = Array.from({ length: count }, () => [])
  for (const [index, dueMs] of requests.dueMs.entries())
    members[Math.floor((dueMs - fromMs) / 1000)]?.push(index)
  return members.map(list => {
    const { allowed, refused, failed, latency } = partOf(requests, list)
    return { allowed, refused, failed, ...latency }
  })
}

/** Ignores values that are NaN. @param {readonly number[]} values @returns {Percentiles} */
function percentilesOf(values) {
  const sorted = Float64Array.from(values.filter(Number.isFinite)).sort()
  const at = (/** @type {number} */ share) =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
  return { p50Ms: at(0.5), p90Ms: at(0.9), p99Ms: at(0.99), maxMs: at(1) }
}
