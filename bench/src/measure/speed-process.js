/**
 * Runs one contestant and one workload in its own process, a slice whenever the parent asks for one. Between slices it
 * waits and costs nothing.
 */
import { contestantNamed } from '../contestants/contestants.js'
import { createWorkload } from '../workloads.js'
import { cpuSecondsSince } from './cpu.js'
import { askAtOnce, askInLanes, askInTurn } from './loops.js'

/** @typedef {{ inFlight: boolean }} SliceOrder */
/** @typedef {{ seconds: number, denied: number, requests: number }} Slice */

/** Requests after the forced collection, before the clock starts. */
const LAP = 30_000

const [name, workloadId, scale] = process.argv.slice(2)
const entry = contestantNamed(String(name))
const workload = createWorkload(
  /** @type {import('../workloads.js').WorkloadId} */ (workloadId),
  Number(scale),
)
const contestant = await entry.create(workload.rule)

/** @param {SliceOrder} order @returns {Promise<Slice>} */
async function runSlice({ inFlight }) {
  const loop = entry.shape === 'sync' ? askAtOnce : inFlight ? askInLanes : askInTurn
  globalThis.gc?.()
  // A forced collection can discard compiled code. A running app soon compiles it again, so the contestant may do that
  // before the clock starts.
  await loop(contestant, workload.requests.slice(0, LAP))
  // Like an app, the process has one limiter, which is emptied and not built again.
  await contestant.forget(workload.keys)
  if (workload.known) await loop(contestant, workload.keys)
  const before = process.cpuUsage()
  const denied = await loop(contestant, workload.requests)
  return { seconds: cpuSecondsSince(before), denied, requests: workload.requests.length }
}

process.on('message', async order => {
  process.send?.(await runSlice(/** @type {SliceOrder} */ (order)))
})
process.send?.('ready')
