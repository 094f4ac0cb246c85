/** Reads what Linux says of a process. Elsewhere there is no /proc, and the figures are NaN. */
import { readdirSync, readFileSync } from 'node:fs'

/** The clock of /proc/<pid>/stat ticks a hundred times a second on every Linux. */
const TICKS_PER_SECOND = 100

/** Seconds of processor time a process has used. @param {number} pid */
export function cpuSecondsOf(pid) {
  const text = read(`/proc/${pid}/stat`)
  // The name before the bracket may hold spaces of its own.
  const fields = text.slice(text.lastIndexOf(') ') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Memory of a process that is in RAM. @param {number} pid */
export function residentBytesOf(pid) {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`))?.[1]) * 1024
}

/** Open files and sockets of a process. @param {number} pid */
export function descriptorsOf(pid) {
  try {
    return readdirSync(`/proc/${pid}/fd`).length
  } catch {
    return Number.NaN
  }
}

/** @param {string} path */
function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
