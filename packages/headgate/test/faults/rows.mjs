// The rows of the report: figure, value, target, and whether it was met.
import { ms } from './measure.mjs'

/** Times depend on the machine, unlike counts, so they do not fail the report. */
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
/** A part that should be at least a percentage of the whole. */
export const share = (figure, part, whole, leastPercent) => ({
  figure,
  value: `${((100 * part) / whole).toFixed(2)} %`,
  target: `≥ ${leastPercent} %`,
  met: part / whole >= leastPercent / 100,
  timing: true,
})
export const info = (figure, value) => ({ figure, value: String(value), target: '', met: true })
