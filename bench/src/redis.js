/** Decisions on one Redis, ours beside other libraries, each in a process of its own. */
import { formatTable, thousands } from './harness/page.js'
import { Child } from './harness/processes.js'
import { startRedis } from './harness/redis-server.js'
import { interleave } from './harness/rounds.js'
import { medianOf, ratioOf } from './harness/stats.js'
import { OURS } from './redis-limiters.js'
import { WORKLOADS } from './redis-workloads.js'

/** @typedef {import('./redis-process.js').Slice & { redisMicros: number }} Slice */
/** @typedef {{ workload: string, inFlight: number, slices: Map<string, Slice[]> }} Cell */

const IN_FLIGHT = [512, 64, 1]
const FULL = { rounds: 9, seconds: 0.5, warmUpSeconds: 1 }
const QUICK = { rounds: 1, seconds: 0.05, warmUpSeconds: 0.05 }
/** Not a limiter, so not a peer. */
const FLOOR = 'INCR'

export const minutes = 7
export const rows = Object.keys(WORKLOADS)

/** @param {import('./bench.js').BenchOptions} options @returns {Promise<import('./bench.js').Sections>} */
export async function measure({ quick, only = rows, machine }) {
  const { rounds, seconds, warmUpSeconds } = quick ? QUICK : FULL
  const server = await startRedis()
  /** @type {Map<string, Child>} */
  const children = new Map()
  /** @param {string} limiter @param {import('./redis-process.js').Order} order @returns {Promise<Slice>} */
  async function run(limiter, order) {
    let child = children.get(limiter)
    if (child === undefined) {
      child = new Child(new URL('redis-process.js', import.meta.url), limiter, server.url)
      children.set(limiter, child)
      await child.receive()
    }
    const before = server.cpuMicros()
    const slice = /** @type {import('./redis-process.js').Slice} */ (await child.request(order))
    return { ...slice, redisMicros: (server.cpuMicros() - before) / slice.requests }
  }
  /** @type {Cell[]} */
  const cells = []
  try {
    for (const workload of only) {
      const { title, limiters } = WORKLOADS[workload] ?? { title: '', limiters: [] }
      for (const inFlight of IN_FLIGHT) {
        for (const limiter of limiters) await run(limiter, { workload, inFlight, seconds: warmUpSeconds })
        const contestants = new Map(
          limiters.map(limiter => [limiter, () => run(limiter, { workload, inFlight, seconds })]),
        )
        const slices = await machine.cell(`${title}, ${inFlight} in flight`, () =>
          interleave(contestants, rounds),
        )
        cells.push({ workload, inFlight, slices })
      }
    }
  } finally {
    for (const child of children.values()) child.stop()
    await server.stop()
  }
  return { redis: fullTable(cells, only), 'redis-short': shortTable(cells, only) }
}

/** @param {readonly Cell[]} cells @param {readonly string[]} workloads */
function fullTable(cells, workloads) {
  return formatTable({
    head: [
      'workload and limiter, × the fastest peer',
      ...IN_FLIGHT.map(inFlight => `${inFlight} in flight`),
      'decisions/s at 64',
      'Node µs',
      'Redis µs',
      'p50 alone, µs',
    ],
    rows: workloads.flatMap(workload =>
      (WORKLOADS[workload]?.limiters ?? []).map(limiter => {
        /** @param {number} inFlight @param {keyof Slice} figure */
        const median = (inFlight, figure) =>
          medianOf(slicesOf(cells, workload, inFlight, limiter).map(slice => slice[figure]))
        return [
          `${WORKLOADS[workload]?.title}: ${nameOf(limiter)}`,
          ...IN_FLIGHT.map(inFlight => {
            const { median: middle, low, high } = timesPeer(cells, workload, inFlight, limiter)
            return `${middle.toFixed(2)} (${low.toFixed(2)}–${high.toFixed(2)})`
          }),
          thousands(median(64, 'perSecond')),
          median(64, 'nodeMicros').toFixed(1),
          median(64, 'redisMicros').toFixed(1),
          median(1, 'p50Micros').toFixed(0),
        ]
      }),
    ),
  })
}

/** Ours alone. @param {readonly Cell[]} cells @param {readonly string[]} workloads */
function shortTable(cells, workloads) {
  return formatTable({
    head: ['decisions a second, × the fastest peer', ...IN_FLIGHT.map(inFlight => `${inFlight} in flight`)],
    rows: workloads.flatMap(workload =>
      (WORKLOADS[workload]?.limiters ?? [])
        .filter(limiter => OURS.includes(limiter))
        .map(limiter => [
          `${WORKLOADS[workload]?.title}${limiter === 'bucket' ? ', token bucket' : ''}`,
          ...IN_FLIGHT.map(
            inFlight => `${timesPeer(cells, workload, inFlight, limiter).median.toFixed(2)} ×`,
          ),
        ]),
    ),
  })
}

/** Compares with whichever peer was fastest in the same round. @param {readonly Cell[]} cells @param {string} workload @param {number} inFlight @param {string} limiter */
function timesPeer(cells, workload, inFlight, limiter) {
  const peers = (WORKLOADS[workload]?.limiters ?? []).filter(name => !OURS.includes(name) && name !== FLOOR)
  /** @param {string} name */
  const rates = name => slicesOf(cells, workload, inFlight, name).map(({ perSecond }) => perSecond)
  const peerRates = peers.map(rates)
  const own = rates(limiter)
  return ratioOf(
    own,
    own.map((_, round) => Math.max(...peerRates.map(all => all[round] ?? 0))),
  )
}

/** @param {readonly Cell[]} cells @param {string} workload @param {number} inFlight @param {string} limiter */
function slicesOf(cells, workload, inFlight, limiter) {
  const cell = cells.find(other => other.workload === workload && other.inFlight === inFlight)
  return cell?.slices.get(limiter) ?? []
}

/** @param {string} limiter */
function nameOf(limiter) {
  return OURS.includes(limiter) ? `**headgate, ${limiter}**` : limiter
}
