/**
 * Runs one contestant with its connections in its own process, a slice of any workload whenever the parent asks. Between
 * slices it waits and costs nothing.
 */
import { cpuSecondsSince } from '../measure/cpu.js'
import { contestantWithId } from './contestants/contestants.js'
import { askForAWhile } from './loop.js'
import { askAsTheyCome } from './open-loop.js'
import { createWorkload, uniformKeys } from './workloads.js'

/** @typedef {import('./workloads.js').WorkloadId} WorkloadId */
/** With `arrivalsPerSecond`, requests do not wait for earlier ones. */
/** @typedef {{ workload: WorkloadId, inFlight: number, seconds: number, arrivalsPerSecond?: number, settleRequests?: number }} SliceOrder */
/** @typedef {import('./loop.js').Counted & { cpuSeconds: number, wrong: string | null, coldP50Ms: number, coldRequests: number }} Slice `cold`: of what came before, while code was compiled. */

const [id, url, place] = process.argv.slice(2)
const entry = contestantWithId(String(id))

/** @type {Map<string, Promise<{ contestant: import('./contestants/contestant.js').Contestant, workload: import('./workloads.js').Workload, laps: number }>>} */
const made = new Map()

/** @param {SliceOrder} order */
function runnerFor({ workload: workloadId, inFlight }) {
  // Limits depend on the length of a lap, and the keys of (a) are filled only once.
  const name = workloadId === 'a' ? 'a' : `${workloadId}-${inFlight}`
  let runner = made.get(name)
  if (runner === undefined) {
    const workload = createWorkload(workloadId, inFlight)
    const { rules, leased } = workload
    const setup = { url: String(url), client: entry.client, rules, prefix: `${place}${name}`, leased }
    runner = entry.create(setup).then(contestant => ({ contestant, workload, laps: 0 }))
    made.set(name, runner)
  }
  return runner
}

/** Asks for every key of (a) once. */
async function fill() {
  const { contestant } = await runnerFor({ workload: 'a', inFlight: 512, seconds: 0 })
  const keys = uniformKeys()
  const counted = await askForAWhile(contestant, { lap: () => keys, firstLap: 0, inFlight: 512, seconds: 0 })
  return counted.requests
}

/** @param {SliceOrder} order @returns {Promise<Slice>} */
async function runSlice(order) {
  const runner = await runnerFor(order)
  const { contestant, workload } = runner
  const { inFlight, seconds, arrivalsPerSecond, settleRequests = 0 } = order
  const { lap } = workload
  globalThis.gc?.()
  // A forced collection can discard compiled code. A running app soon compiles it again, so every contestant may do that
  // before the clock starts; the time before is reported separately. A long lap mostly runs after that anyway.
  let cold = null
  if ((inFlight === 1 || workload.deniedPerLap === 0) && entry.name !== 'bottleneck') {
    const atLeast = Math.max(
      settleRequests,
      inFlight === 1 ? SETTLE_REQUESTS.inTurn : SETTLE_REQUESTS.inFlight,
    )
    const settling = {
      lap,
      firstLap: runner.laps,
      inFlight,
      seconds: SETTLE_SECONDS,
      atLeast,
    }
    cold = await askForAWhile(contestant, settling)
    runner.laps += cold.laps
  }
  const strayedBefore = contestant.strayed?.() ?? 0
  const before = process.cpuUsage()
  const counted = await (arrivalsPerSecond === undefined
    ? askForAWhile(contestant, { lap, firstLap: runner.laps, inFlight, seconds })
    : askAsTheyCome(contestant, { lap, firstLap: runner.laps, seconds, arrivalsPerSecond }))
  const cpuSeconds = cpuSecondsSince(before)
  runner.laps += counted.laps
  const strayed = (contestant.strayed?.() ?? 0) - strayedBefore
  return {
    ...counted,
    cpuSeconds,
    wrong: whatIsWrong(counted, workload.deniedPerLap, strayed),
    coldP50Ms: cold?.p50Ms ?? counted.p50Ms,
    coldRequests: cold?.requests ?? 0,
  }
}

/** The least requests until the code is compiled again: on a busy machine, a fixed time would hold too few. */
const SETTLE_REQUESTS = { inTurn: 2_000, inFlight: 15_000 }
const SETTLE_SECONDS = 0.15

/** Allows for a bucket's refill; otherwise every contestant must decide alike. */
const TOLERATED_SHARE = 0.01

/** @param {import('./loop.js').Counted} counted @param {number | null} deniedPerLap @param {number} strayed */
function whatIsWrong({ requests, denied, laps }, deniedPerLap, strayed) {
  if (strayed > 0) return `${strayed} of ${requests} decisions did not come from Redis`
  if (deniedPerLap === null) return null
  const wanted = laps * deniedPerLap
  if (Math.abs(denied - wanted) > TOLERATED_SHARE * requests)
    return `${denied} of ${requests} were denied instead of ${wanted}`
  return null
}

process.on('message', async message => {
  if (message === 'fill') process.send?.(await fill())
  else process.send?.(await runSlice(/** @type {SliceOrder} */ (message)))
})
process.send?.('ready')
