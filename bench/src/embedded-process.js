/** Runs one limiter in a process of its own: a slice of a workload, or what its keys weigh, whenever the parent asks. */
import { setImmediate } from 'node:timers/promises'
import { LIMITERS } from './embedded-limiters.js'
import { countOver, createRandom, limitDenying, zipfRanks } from './harness/sequences.js'

/** @typedef {{ workload: 'a' | 'b' | 'memory', count: number }} Order `count` of requests, or of keys to weigh. */

const [name = ''] = process.argv.slice(2)
const create = LIMITERS[name]
if (create === undefined) throw new Error(`no limiter is called '${name}'`)
const SEED = 20_240_607
/** Outlasts the run. */
const windowSeconds = 86_400
let lap = 0
/** @type {Map<string, import('./embedded-limiters.js').Ask>} */
const asks = new Map()

/** @param {string} id @param {number} limit */
function askOf(id, limit) {
  const ask = asks.get(id) ?? /** @type {NonNullable<typeof create>} */ (create)({ limit, windowSeconds })
  asks.set(id, ask)
  return ask
}

/** @param {Order} order @returns {{ keys: string[], limit: number, denied: number }} */
function requestsOf({ workload, count }) {
  const random = createRandom(SEED)
  if (workload === 'a')
    return {
      keys: Array.from({ length: count }, () => String(Math.floor(random() * 100_000))),
      limit: 1_000_000,
      denied: 0,
    }
  const { ranks, counts } = zipfRanks(10_000, count, random)
  const limit = limitDenying(counts, 0.3 * count)
  lap++
  return { keys: Array.from(ranks, rank => `${lap}-${rank}`), limit, denied: countOver(counts, limit) }
}

/** Returns the nanoseconds of processor time a decision takes. @param {Order} order */
async function decide(order) {
  const { keys, limit, denied: expected } = requestsOf(order)
  const ask = askOf(order.workload, limit)
  let denied = 0
  const before = process.cpuUsage()
  for (const key of keys) if (!(await ask(key))) denied++
  const { user, system } = process.cpuUsage(before)
  if (Math.abs(denied - expected) > keys.length / 100)
    throw new Error(`${name}, (${order.workload}): ${denied} of ${keys.length} denied, expected ${expected}`)
  return ((user + system) * 1000) / keys.length
}

/** Returns the bytes that stay of a key that asked once, itself included. @param {Order} order */
async function weigh({ count }) {
  const ask = askOf('memory', 1_000_000)
  for (let index = 0; index < 20_000; index++) await ask(`warm:${index % 10}`)
  const before = await settledBytes()
  // Each key is built when it is needed, as a server does from a request: only the limiter keeps it.
  for (let index = 0; index < count; index++) await ask(`key:${index}`)
  return ((await settledBytes()) - before) / count
}

async function settledBytes() {
  for (let pass = 0; pass < 3; pass++) {
    await setImmediate()
    globalThis.gc?.()
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

process.on('message', async message => {
  const order = /** @type {Order} */ (message)
  process.send?.(order.workload === 'memory' ? await weigh(order) : await decide(order))
})
process.send?.('ready')
