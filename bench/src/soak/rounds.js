import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startGateway, startListener } from '../harness/gateway.js'
import { Child, descriptorsOf, residentBytesOf } from '../harness/processes.js'
import { medianOf } from '../harness/stats.js'
import { policyFile, usersOf } from '../load/users.js'
import { startFaultyRedis } from './faults.js'

/**
 * One fault and the traffic around it.
 *
 * @typedef {object} Round
 * @property {string} fault
 * @property {number} atHours Hours from the start of the soak to the end of the round.
 * @property {number} allowed
 * @property {number} denied
 * @property {number} lost
 * @property {number} residentBytes The lowest value, which is what a collection leaves.
 * @property {number} heapBytes After a full collection, when the clients have gone.
 * @property {number} descriptors When the clients have gone.
 * @property {number} loopP99Ms The median over the seconds.
 * @property {number} loopWorstMs
 */

const USERS = 100
const RATE = 200
/** Longer than the gateway keeps idle connections to its upstream. */
const CALM_MS = 5_000
/** Long enough for the monitor to write a line after the collection. */
const AFTER_COLLECTION_MS = 2_500
/** Callers come back after this many rounds, when the memory for callers has reached its full size. */
const CALLERS_ROUNDS = 10

/**
 * Runs rounds of traffic by users who come back after a while, with one Redis fault in each.
 *
 * @param {{ rounds: number, roundMs: number }} order
 * @param {(round: Round, index: number) => void} tell
 * @returns {Promise<Round[]>}
 */
export async function soak({ rounds, roundMs }, tell) {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-soak-'))
  const loopFile = join(folder, 'loop')
  /** @type {(() => unknown)[]} */
  const stops = [() => rm(folder, { recursive: true, force: true })]
  try {
    const redis = await startFaultyRedis()
    stops.unshift(() => redis.stop())
    const upstream = await startListener(new URL('../harness/upstream-process.js', import.meta.url))
    stops.unshift(() => upstream.stop())
    const { limitPerSecond } = usersOf({ rate: RATE, users: USERS })
    process.env.LOOP_FILE = loopFile
    const gateway = await startGateway(
      policyFile(limitPerSecond, upstream.port),
      ['--redis', redis.url, '--max-client-requests', '0'],
      ['--expose-gc', '--import', new URL('monitor-process.js', import.meta.url).href],
    )
    stops.unshift(() => gateway.stop())
    const generator = new Child(new URL('../load/generator-process.js', import.meta.url))
    stops.unshift(() => generator.stop())
    await generator.receive()

    const all = []
    const beganMs = performance.now()
    for (let index = 0; index < rounds; index++) {
      const fault = /** @type {typeof redis.faults[number]} */ (redis.faults[index % redis.faults.length])
      const linesBefore = (await linesOf(loopFile)).length
      const order = { ports: [gateway.port], users: USERS, rate: RATE, connections: USERS }
      await generator.request({
        ...order,
        lengthMs: roundMs - CALM_MS - AFTER_COLLECTION_MS,
        names: `round-${index % CALLERS_ROUNDS}`,
      })
      const traffic = generator.receive()
      traffic.catch(() => {})
      const resident = watchResident(gateway.pid)
      await sleep((roundMs - CALM_MS - AFTER_COLLECTION_MS) / 3)
      await fault.happen()
      const { status } = /** @type {import('../load/generator-process.js').Traffic} */ (await traffic)
      const seconds = (await linesOf(loopFile)).slice(linesBefore)
      await sleep(CALM_MS)
      gateway.signal('SIGUSR2')
      await sleep(AFTER_COLLECTION_MS)
      const [, heapBytes = Number.NaN] = (await linesOf(loopFile)).at(-1) ?? []
      /** @type {Round} */
      const round = {
        fault: fault.name,
        atHours: (performance.now() - beganMs) / 3_600_000,
        ...countOf(status),
        residentBytes: resident.least(),
        heapBytes,
        descriptors: descriptorsOf(gateway.pid),
        loopP99Ms: medianOf(seconds.map(([late = 0]) => late)),
        loopWorstMs: Math.max(...seconds.map(([late = 0]) => late)),
      }
      all.push(round)
      tell(round, index)
    }
    return all
  } finally {
    for (const stop of stops) await stop()
  }
}

/** @param {number} pid */
function watchResident(pid) {
  let least = Number.POSITIVE_INFINITY
  const watching = setInterval(() => {
    least = Math.min(least, residentBytesOf(pid))
  }, 500)
  return {
    least() {
      clearInterval(watching)
      return least
    },
  }
}

/** @param {string} file @returns {Promise<number[][]>} */
async function linesOf(file) {
  const text = await readFile(file, 'utf8').catch(() => '')
  return text
    .split('\n')
    .slice(0, -1)
    .map(line => line.split(' ').map(Number))
}

/** @param {Uint16Array} status */
function countOf(status) {
  const count = (/** @type {number} */ wanted) => status.filter(each => each === wanted).length
  const [allowed, denied] = [count(200), count(429)]
  return { allowed, denied, lost: status.length - allowed - denied }
}
