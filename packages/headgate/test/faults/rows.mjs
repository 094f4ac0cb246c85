// The rows of the report: figure, value, target, and whether it was met.
import { ms } from './measure.mjs'

/** Times depend on the machine as counts do not: they are figures of the report and do not fail it. */
export const time = (figure, value, targetMs) => ({
  figure,
  value: ms(value),
  target: `≤ ${targetMs} ms`,
  met: value <= targetMs,
  timing: true,
})
export const atMost = (figure, value, most) => ({
  figure,
  value: String(value),
  target: most === 0 ? '0' : `≤ ${most}`,
  met: value <= most,
})
export const moreThan = (figure, value, least) => ({
  figure,
  value: String(value),
  target: `> ${least}`,
  met: value > least,
})
export const exactly = (figure, value, expected) => ({
  figure,
  value: String(value),
  target: String(expected),
  met: value === expected,
})
/** A part of a whole that is to be at least so many percent of it. */
export const share = (figure, part, whole, leastPercent) => ({
  figure,
  value: `${((100 * part) / whole).toFixed(2)} %`,
  target: `≥ ${leastPercent} %`,
  met: part / whole >= leastPercent / 100,
  timing: true,
})
export const info = (figure, value) => ({ figure, value: String(value), target: '', met: true })
