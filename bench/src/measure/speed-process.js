/**
 * Runs in a process of its own: one contestant, one workload, a slice of time whenever the parent asks for one.
 * Between slices it waits and costs nothing.
 */
import { contestantNamed } from '../contestants/contestants.js'
import { createWorkload } from '../workloads.js'
import { askAtOnce, askInLanes, askInTurn } from './loops.js'

/** @typedef {{ inFlight: boolean }} SliceOrder */
/** @typedef {{ seconds: number, denied: number, requests: number }} Slice */

const [name, workloadId, scale] = process.argv.slice(2)
const entry = contestantNamed(String(name))
const workload = createWorkload(
  /** @type {import('../workloads.js').WorkloadId} */ (workloadId),
  Number(scale),
)
const contestant = await entry.create(workload.rule)

/** @param {SliceOrder} order @returns {Promise<Slice>} */
async function runSlice({ inFlight }) {
  // One limiter for the whole process, as an app has; it is emptied, not built again.
  await contestant.forget(workload.keys)
  if (workload.known) await askInTurn(contestant, workload.keys)
  const loop = entry.shape === 'sync' ? askAtOnce : inFlight ? askInLanes : askInTurn
  globalThis.gc?.()
  const startMs = performance.now()
  const denied = await loop(contestant, workload.requests)
  return { seconds: (performance.now() - startMs) / 1000, denied, requests: workload.requests.length }
}

process.on('message', async order => {
  process.send?.(await runSlice(/** @type {SliceOrder} */ (order)))
})
process.send?.('ready')
