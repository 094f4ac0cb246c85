/** What Linux says of a process. Elsewhere there is no /proc, and the figures are NaN. */
import { readFileSync } from 'node:fs'

/** The clock of /proc/<pid>/stat ticks a hundred times a second on every Linux. */
const TICKS_PER_SECOND = 100

/** Seconds of processor time a process has used. @param {number} pid */
export function cpuSecondsOf(pid) {
  const text = read(`/proc/${pid}/stat`)
  // The name before the bracket may hold spaces of its own.
  const fields = text.slice(text.lastIndexOf(') ') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** @param {string} path */
function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
