/** Runs one limiter in a process of its own, a slice of any workload whenever the parent asks for one. */
import { quantile } from './harness/stats.js'
import { LIMITERS } from './redis-limiters.js'
import { createWorkload } from './redis-workloads.js'

/** @typedef {{ workload: string, inFlight: number, seconds: number }} Order */
/** @typedef {{ perSecond: number, nodeMicros: number, requests: number, p50Micros: number }} Slice */

const [name = '', url = ''] = process.argv.slice(2)
/** @type {Map<string, Promise<{ ask: import('./redis-limiters.js').Ask, workload: import('./redis-workloads.js').Workload, laps: number }>>} */
const opened = new Map()

/** @param {Order} order */
async function open({ workload: id, inFlight }) {
  const workload = createWorkload(id, inFlight)
  const create = LIMITERS[name]
  if (create === undefined) throw new Error(`no limiter is called '${name}'`)
  const prefix = `${id}${inFlight}-${name.replaceAll(/\W/g, '')}`
  return { ask: (await create({ url, prefix, rules: workload.rules })).ask, workload, laps: 0 }
}

/** Asks with `inFlight` requests at any time, for some seconds and to the end of a lap. @param {Order} order @returns {Promise<Slice>} */
async function run(order) {
  const { inFlight, seconds } = order
  const id = `${order.workload} ${inFlight}`
  const opening = opened.get(id) ?? open(order)
  opened.set(id, opening)
  const runner = await opening
  const { ask, workload } = runner
  const [firstLap, timeOneIn] = [runner.laps, inFlight === 1 ? 1 : 64]
  /** @type {number[]} */
  const timesMs = []
  let [requests, denied, next] = [0, 0, 0]
  let keys = workload.lap(runner.laps++)
  const cpu = process.cpuUsage()
  const beganMs = performance.now()
  const endsMs = beganMs + seconds * 1000
  const ended = () => {
    if (next < keys.length) return false
    if (performance.now() >= endsMs) return true
    keys = workload.lap(runner.laps++)
    next = 0
    return false
  }
  const askOneByOne = async () => {
    while (!ended()) {
      const key = /** @type {string} */ (keys[next++])
      const sentMs = requests++ % timeOneIn === 0 ? performance.now() : 0
      if (!(await ask(key))) denied++
      if (sentMs !== 0) timesMs.push(performance.now() - sentMs)
    }
  }
  await Promise.all(Array.from({ length: inFlight }, askOneByOne))
  const elapsed = (performance.now() - beganMs) / 1000
  const { user, system } = process.cpuUsage(cpu)
  const expected = (runner.laps - firstLap) * workload.deniedPerLap
  // A bucket refills a little meanwhile; otherwise all decide alike.
  if (Math.abs(denied - expected) > requests / 100)
    throw new Error(`${name}, (${id}): ${denied} of ${requests} denied, expected ${expected}`)
  const p50Micros =
    quantile(
      timesMs.sort((one, other) => one - other),
      0.5,
    ) * 1000
  return { perSecond: requests / elapsed, nodeMicros: (user + system) / requests, requests, p50Micros }
}

process.on('message', async order => {
  process.send?.(await run(/** @type {Order} */ (order)))
})
process.send?.('ready')
