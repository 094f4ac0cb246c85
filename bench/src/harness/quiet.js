/**
 * Sees to it that figures are taken on a quiet machine: waits until it is one, and repeats what was measured while
 * another program was busy or the host took the processor away.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

/** @typedef {{ name: string, parent: number, ticks: number }} Process `ticks` of processor time, of 10 ms each. */
/** @typedef {{ atMs: number, load: number, stealTicks: number, processes: ReadonlyMap<number, Process> }} Reading */
/** @typedef {{ read: () => Reading, sleep: (ms: number) => Promise<unknown>, tell: (line: string) => void }} Surroundings */

const MOST_LOAD = 0.7
/** Of one core. */
const MOST_SHARE = 0.05
const LOOK_EVERY_MS = 2_000
const LONGEST_WAIT_MS = 5 * 60_000
const MOST_REPEATS = 2
const KERNEL = 2
const TICK_MS = 10

/** Measures on a machine that is quiet, or says that it was not. */
export class Machine {
  #read
  #sleep
  #tell
  #isNoisy
  #ownPid
  /** Cells that stayed noisy, and what disturbed them. @type {string[]} */
  noisyCells = []
  /** @type {{ load: number, steal: number }} */
  #before = { load: Number.NaN, steal: Number.NaN }

  /** @param {Partial<Surroundings> & { isNoisy: boolean, ownPid?: number }} options `isNoisy`: look anyway, and write nothing. */
  constructor({ isNoisy, ownPid = process.pid, ...given }) {
    this.#read = given.read ?? readMachine
    this.#sleep = given.sleep ?? sleep
    this.#tell = given.tell ?? (() => {})
    this.#isNoisy = isNoisy
    this.#ownPid = ownPid
  }

  /**
   * Resolves once the machine is quiet; rejects if it is not within five minutes. `ourLoad` says that the load average
   * is still that of a bench of ours.
   *
   * @param {{ ourLoad?: boolean }} [options]
   */
  async untilQuiet({ ourLoad = false } = {}) {
    this.noisyCells = []
    const { atMs: beganMs, load } = this.#read()
    this.#before = { load, steal: Number.NaN }
    if (this.#isNoisy) return
    for (let said = ''; ; ) {
      const first = this.#read()
      await this.#sleep(LOOK_EVERY_MS)
      const last = this.#read()
      const reasons = noiseBetween(first, last, this.#ownPid)
      if (!ourLoad && last.load >= MOST_LOAD) reasons.unshift(`the load is ${last.load.toFixed(2)}`)
      this.#before = { load: last.load, steal: stealBetween(first, last) }
      if (reasons.length === 0) return
      const text = reasons.join(', ')
      if (last.atMs - beganMs > LONGEST_WAIT_MS)
        throw new Error(
          `the machine is not quiet: ${text}. Nothing was measured; --noisy measures anyway and writes nothing`,
        )
      if (text !== said) this.#tell(`waiting for a quiet machine: ${text}`)
      said = text
    }
  }

  /**
   * Runs a measurement, and again if the machine was not quiet meanwhile. The last run counts.
   *
   * @template T
   * @param {string} cell
   * @param {() => Promise<T>} measure
   * @returns {Promise<T>}
   */
  async cell(cell, measure) {
    for (let repeats = 0; ; repeats++) {
      this.#tell(repeats === 0 ? cell : `${cell}, again`)
      const before = this.#read()
      const result = await measure()
      const reasons = noiseBetween(before, this.#read(), this.#ownPid)
      if (reasons.length === 0 || this.#isNoisy) return result
      this.#tell(`${cell}: noisy, ${reasons.join(', ')}`)
      if (repeats === MOST_REPEATS) {
        this.noisyCells.push(`${cell} (${reasons.join(', ')})`)
        return result
      }
    }
  }

  /** Says how quiet it was, for the page. */
  describe() {
    const { load, steal } = this.#before
    if (this.#isNoisy) return `load before the run ${load.toFixed(2)}, on a machine that was not watched`
    const noisy = this.noisyCells.length === 0 ? 'every cell quiet' : `noisy: ${this.noisyCells.join('; ')}`
    return `load before the run ${load.toFixed(2)}, stolen time ${(steal * 100).toFixed(1)} %, ${noisy}`
  }
}

/** Names what disturbed the machine between two readings. @param {Reading} before @param {Reading} after @param {number} ownPid */
export function noiseBetween(before, after, ownPid) {
  const reasons = []
  const elapsedMs = Math.max(1, after.atMs - before.atMs)
  for (const [pid, { name, parent, ticks }] of after.processes) {
    if (pid === KERNEL || parent === KERNEL || isOwn(pid, after, ownPid)) continue
    const share = ((ticks - (before.processes.get(pid)?.ticks ?? 0)) * TICK_MS) / elapsedMs
    if (share > MOST_SHARE) reasons.push(`${name} (${pid}) takes ${(share * 100).toFixed(0)} % of a core`)
  }
  const steal = stealBetween(before, after)
  if (steal > MOST_SHARE) reasons.push(`the host takes ${(steal * 100).toFixed(0)} % of a core`)
  return reasons
}

/** Returns what the host took, as a share of one core. @param {Reading} before @param {Reading} after */
function stealBetween(before, after) {
  return ((after.stealTicks - before.stealTicks) * TICK_MS) / Math.max(1, after.atMs - before.atMs)
}

/** Whether a process is ours or was started by one of ours. @param {number} pid @param {Reading} reading @param {number} ownPid */
function isOwn(pid, { processes }, ownPid) {
  for (let at = pid; at > 1; at = processes.get(at)?.parent ?? 0) if (at === ownPid) return true
  return false
}

/** @returns {Reading} */
function readMachine() {
  const processes = new Map()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    const found = processOf(Number(name))
    if (found !== undefined) processes.set(Number(name), found)
  }
  const [, , , , , , , , steal] = readFileSync('/proc/stat', 'utf8').split(/ +/, 9)
  return { atMs: performance.now(), load: loadavg()[0] ?? Number.NaN, stealTicks: Number(steal), processes }
}

/** @param {number} pid @returns {Process | undefined} */
function processOf(pid) {
  let text
  try {
    text = readFileSync(`/proc/${pid}/stat`, 'utf8')
  } catch {
    // It has ended.
    return undefined
  }
  const nameEnds = text.lastIndexOf(')')
  const fields = text.slice(nameEnds + 2).split(' ')
  return {
    name: text.slice(text.indexOf('(') + 1, nameEnds),
    parent: Number(fields[1]),
    ticks: Number(fields[11]) + Number(fields[12]),
  }
}
