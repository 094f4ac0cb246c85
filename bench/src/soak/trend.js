/** Fits a line through measurements to see whether they grow, and how certain its slope is. */

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
