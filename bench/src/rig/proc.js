/** Reads a process's figures from /proc. They are NaN where there is none, as outside Linux. */
import { readdirSync, readFileSync } from 'node:fs'

/** The clock of /proc/<pid>/stat ticks a hundred times a second on every Linux. */
const TICKS_PER_SECOND = 100

/** Returns the seconds of processor time that a process has used. @param {number} pid */
export function cpuSecondsOf(pid) {
  const text = read(`/proc/${pid}/stat`)
  // The name before the bracket may contain spaces.
  const fields = text.slice(text.lastIndexOf(') ') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND
}

/** Returns the resident memory of a process. @param {number} pid */
export function residentBytesOf(pid) {
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(read(`/proc/${pid}/status`))?.[1]) * 1024
}

/** Counts the open files and sockets of a process. @param {number} pid */
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
