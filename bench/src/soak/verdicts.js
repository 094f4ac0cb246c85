import { medianOf } from '../harness/stats.js'

/** @typedef {import('./rounds.js').Round} Round */
/** @typedef {{ claim: string, measured: string, outcome: 'met' | 'missed' | 'too short to say' }} Verdict */

const MOST_MB_PER_HOUR = 1
const MOST_LOOP_MS = 20
/** Allows for a connection that is just reopening; a leak of one per round is far more in an hour. */
const MOST_DESCRIPTORS_MORE = 3

/** Returns the rounds that count: those after the first third, or after ten minutes. @param {readonly Round[]} rounds */
function afterWarmUp(rounds) {
  const lengthHours = rounds.at(-1)?.atHours ?? 0
  const warmUpHours = Math.min(lengthHours / 3, 10 / 60)
  return rounds.filter(({ atHours }) => atHours > warmUpHours)
}

/** @param {readonly Round[]} rounds @returns {Verdict[]} */
export function verdictsOf(rounds) {
  const warm = afterWarmUp(rounds)
  const lost = rounds.reduce((sum, round) => sum + round.lost, 0)
  const loop = medianOf(warm.map(({ loopP99Ms }) => loopP99Ms))
  return [
    { claim: 'no request is lost', measured: String(lost), outcome: lost === 0 ? 'met' : 'missed' },
    growth('memory in RAM grows', warm, ({ residentBytes }) => residentBytes),
    growth('the heap grows', warm, ({ heapBytes }) => heapBytes),
    descriptors(warm),
    {
      claim: `the p99 delay of the event loop is below ${MOST_LOOP_MS} ms`,
      measured: `${loop.toFixed(1)} ms`,
      outcome: loop < MOST_LOOP_MS ? 'met' : 'missed',
    },
  ]
}

/** @param {string} what @param {readonly Round[]} rounds @param {(round: Round) => number} bytesOf @returns {Verdict} */
function growth(what, rounds, bytesOf) {
  const points = rounds.map(round => ({ atHours: round.atHours, value: bytesOf(round) / 1e6 }))
  const { perHour, uncertainty } = trendOf(points)
  return {
    claim: `${what} by less than ${MOST_MB_PER_HOUR} MB an hour`,
    measured: Number.isFinite(uncertainty)
      ? `${perHour.toFixed(1)} ± ${uncertainty.toFixed(1)} MB an hour`
      : 'not enough rounds',
    outcome: growthOutcome(perHour, uncertainty),
  }
}

/** @param {number} perHour @param {number} uncertainty @returns {Verdict['outcome']} */
function growthOutcome(perHour, uncertainty) {
  if (perHour - uncertainty > MOST_MB_PER_HOUR) return 'missed'
  return perHour + uncertainty < MOST_MB_PER_HOUR ? 'met' : 'too short to say'
}

/** @param {readonly Round[]} rounds @returns {Verdict} */
function descriptors(rounds) {
  const all = rounds.map(round => round.descriptors)
  const half = Math.ceil(all.length / 2)
  const [first, second] = [Math.max(...all.slice(0, half)), Math.max(...all.slice(half))]
  return {
    claim: 'open files and sockets stay as they are',
    measured: `at most ${first} in the first half, ${second} in the second`,
    outcome: all.length < 2 ? 'too short to say' : second - first <= MOST_DESCRIPTORS_MORE ? 'met' : 'missed',
  }
}

/** @typedef {{ perHour: number, uncertainty: number }} Trend The slope, and half of its 95 % interval. */

/**
 * Fits by least squares. With fewer than three points the uncertainty is infinite.
 *
 * @param {readonly { atHours: number, value: number }[]} points
 * @returns {Trend}
 */
export function trendOf(points) {
  const count = points.length
  const mean = (/** @type {readonly number[]} */ values) =>
    values.reduce((sum, value) => sum + value, 0) / count
  const middle = mean(points.map(({ atHours }) => atHours))
  const level = mean(points.map(({ value }) => value))
  const spread = points.reduce((sum, { atHours }) => sum + (atHours - middle) ** 2, 0)
  if (count < 3 || spread === 0) return { perHour: 0, uncertainty: Number.POSITIVE_INFINITY }
  const perHour =
    points.reduce((sum, { atHours, value }) => sum + (atHours - middle) * (value - level), 0) / spread
  const residue = points.reduce(
    (sum, { atHours, value }) => sum + (value - level - perHour * (atHours - middle)) ** 2,
    0,
  )
  return { perHour, uncertainty: 1.96 * Math.sqrt(residue / (count - 2) / spread) }
}
