/** How the decisions a second grow with processes that ask and with primaries that answer. */
import { Child } from '../measure/child.js'
import { spreadOf } from '../report/statistics.js'
import { startCluster } from './cluster.js'

/** @typedef {{ contestant: string, primaries: number, cluster: boolean, processes: number, perSecond: import('../report/statistics.js').Spread }} Scale */

const PROCESSES = [1, 2, 4]
const IN_FLIGHT = 512
const HEADGATE = 'headgate, sliding-window counter · node-redis'
const PEER = 'rate-limit-redis (express-rate-limit) · node-redis, tuned'

/**
 * @param {string} url Of a single server.
 * @param {{ rounds: number, seconds: number }} order
 * @param {(step: string) => void} tell
 * @returns {Promise<Scale[]>}
 */
export async function measureScaling(url, order, tell) {
  const scales = []
  for (const contestant of [HEADGATE, PEER])
    scales.push(...(await onOne({ contestant, url, primaries: 1, cluster: false }, order, tell)))
  for (const primaries of [1, 3]) {
    const cluster = await startCluster(primaries)
    try {
      scales.push(
        ...(await onOne({ contestant: HEADGATE, url: cluster.url, primaries, cluster: true }, order, tell)),
      )
    } finally {
      await cluster.stop()
    }
  }
  return scales
}

/**
 * @param {{ contestant: string, url: string, primaries: number, cluster: boolean }} where
 * @param {{ rounds: number, seconds: number }} order
 * @param {(step: string) => void} tell
 * @returns {Promise<Scale[]>}
 */
async function onOne({ contestant, url, primaries, cluster }, { rounds, seconds }, tell) {
  const most = Math.max(...PROCESSES)
  const children = Array.from(
    { length: most },
    () => new Child('../redis/slice-process.js', [contestant, url, 'scale']),
  )
  try {
    await Promise.all(children.map(child => child.receive()))
    /** @type {Map<number, number[]>} */
    const rates = new Map(PROCESSES.map(count => [count, []]))
    await together(children, seconds)
    for (let round = 0; round < rounds; round++) {
      for (const count of PROCESSES) {
        tell(
          `${contestant}, ${count} processes, ${primaries} ${cluster ? 'primaries of a cluster' : 'server'}`,
        )
        rates.get(count)?.push(await together(children.slice(0, count), seconds))
      }
    }
    return [...rates].map(([processes, list]) => ({
      ...{ contestant, primaries, cluster, processes },
      perSecond: spreadOf(list),
    }))
  } finally {
    for (const child of children) child.stop()
  }
}

/** What all of them decided in a second. @param {readonly Child[]} children @param {number} seconds */
async function together(children, seconds) {
  const order = { workload: 'a', inFlight: IN_FLIGHT, seconds }
  const slices = /** @type {import('./slice-process.js').Slice[]} */ (
    await Promise.all(children.map(child => child.request(order)))
  )
  for (const { wrong } of slices) if (wrong !== null) throw new Error(`several processes: ${wrong}`)
  return slices.reduce((sum, { requests, seconds: elapsed }) => sum + requests / elapsed, 0)
}
