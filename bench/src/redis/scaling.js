/** Measures how throughput grows with the number of asking processes and of answering primaries. */
import { Child } from '../measure/child.js'
import { spreadOf } from '../report/statistics.js'
import { startCluster } from './cluster.js'

/** @typedef {import('../report/statistics.js').Spread} Spread */
/** @typedef {{ contestant: string, primaries: number, cluster: boolean, processes: number, perSecond: Spread, perNodeSecond: Spread, perRedisSecond: Spread }} Scale Decisions per second of wall-clock time, and of either side's processor time. */
/** @typedef {{ contestant: string, url: string, cpuSeconds: () => Promise<number>, primaries: number, cluster: boolean, workload?: import('./workloads.js').WorkloadId }} Target */
/** @typedef {{ requests: number, perSecond: number, nodeSeconds: number, redisSeconds: number }} Lap */

const PROCESSES = [1, 2, 4]
const IN_FLIGHT = 512
export const HEADGATE = 'headgate, sliding-window counter · node-redis'
const PEER = 'rate-limit-redis (express-rate-limit) · node-redis, tuned'

/**
 * @param {import('./server.js').Server} server
 * @param {{ rounds: number, seconds: number }} order
 * @param {(step: string) => void} tell
 * @returns {Promise<Scale[]>}
 */
export async function measureScaling(server, order, tell) {
  const { url, cpuSeconds } = server
  const scales = []
  for (const contestant of [HEADGATE, PEER])
    scales.push(
      ...(await measureTarget({ contestant, url, cpuSeconds, primaries: 1, cluster: false }, order, tell)),
    )
  for (const primaries of [1, 3]) scales.push(...(await measureCluster(primaries, order, tell)))
  return scales
}

/** @param {number} primaries @param {{ rounds: number, seconds: number }} order @param {(step: string) => void} tell */
export async function measureCluster(primaries, order, tell) {
  const cluster = await startCluster(primaries)
  try {
    return await measureTarget({ contestant: HEADGATE, ...cluster, primaries, cluster: true }, order, tell)
  } finally {
    await cluster.stop()
  }
}

/**
 * Measures one, two and four processes that ask at once.
 *
 * @param {Target} target
 * @param {{ rounds: number, seconds: number }} order
 * @param {(step: string) => void} tell
 * @returns {Promise<Scale[]>}
 */
export async function measureTarget(target, { rounds, seconds }, tell) {
  const { contestant, url, primaries, cluster } = target
  const most = Math.max(...PROCESSES)
  const children = Array.from(
    { length: most },
    () => new Child('../redis/slice-process.js', [contestant, url, 'scale']),
  )
  try {
    await Promise.all(children.map(child => child.receive()))
    /** @type {Map<number, Lap[]>} */
    const laps = new Map(PROCESSES.map(count => [count, []]))
    await together(children, target, seconds)
    for (let round = 0; round < rounds; round++) {
      for (const count of PROCESSES) {
        tell(
          `${contestant}, ${count} processes, ${primaries} ${cluster ? 'primaries of a cluster' : 'server'}`,
        )
        laps.get(count)?.push(await together(children.slice(0, count), target, seconds))
      }
    }
    return [...laps].map(([processes, list]) => ({
      contestant,
      primaries,
      cluster,
      processes,
      perSecond: spreadOf(list.map(lap => lap.perSecond)),
      perNodeSecond: spreadOf(list.map(lap => lap.requests / lap.nodeSeconds)),
      perRedisSecond: spreadOf(list.map(lap => lap.requests / lap.redisSeconds)),
    }))
  } finally {
    for (const child of children) child.stop()
  }
}

/** Adds up the decisions of all processes. @param {readonly Child[]} children @param {Target} target @param {number} seconds @returns {Promise<Lap>} */
async function together(children, { workload = 'a', cpuSeconds }, seconds) {
  const order = { workload, inFlight: IN_FLIGHT, seconds }
  const before = await cpuSeconds()
  const slices = /** @type {import('./slice-process.js').Slice[]} */ (
    await Promise.all(children.map(child => child.request(order)))
  )
  const redisSeconds = (await cpuSeconds()) - before
  for (const { wrong } of slices) if (wrong !== null) throw new Error(`several processes: ${wrong}`)
  const sum = (/** @type {(slice: import('./slice-process.js').Slice) => number} */ of) =>
    slices.reduce((total, slice) => total + of(slice), 0)
  const [requests, settling] = [sum(slice => slice.requests), sum(slice => slice.coldRequests)]
  return {
    requests,
    perSecond: sum(slice => slice.requests / slice.seconds),
    nodeSeconds: sum(slice => slice.cpuSeconds),
    // Redis also worked while the processes warmed up.
    redisSeconds: (redisSeconds * requests) / (requests + settling),
  }
}
