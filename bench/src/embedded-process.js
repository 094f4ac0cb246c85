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
/** @type {Map<string, import('./embedded-limiters.js').Limiter>} */
const limiters = new Map()

/** @param {string} id @param {number} limit */
function limiterOf(id, limit) {
  const limiter =
    limiters.get(id) ?? /** @type {NonNullable<typeof create>} */ (create)({ limit, windowSeconds })
  limiters.set(id, limiter)
  return limiter
}

/** Makes one request after the other, and returns how many were denied. @param {import('./embedded-limiters.js').Limiter} limiter @param {Iterable<string>} requests */
async function askAll({ ask, admits }, requests) {
  let denied = 0
  for (const key of requests) {
    try {
      if (!admits(await ask(key))) denied++
    } catch (rejection) {
      if (rejection instanceof Error) throw rejection
      denied++
    }
  }
  return denied
}

/** Draws the keys of all requests. In (b) every lap has other keys, so that each starts with its limit unused. @param {Order} order */
function requestsOf({ workload, count }) {
  const random = createRandom(SEED)
  if (workload === 'a') {
    const keys = Array.from({ length: 100_000 }, (_, index) => `user:${index}`)
    const requests = Array.from({ length: count }, () => String(keys[Math.floor(random() * keys.length)]))
    return { requests, limit: 1_000_000, denied: 0 }
  }
  lap++
  const keys = Array.from({ length: 10_000 }, (_, rank) => `user:${lap}-${rank}`)
  const { ranks, counts } = zipfRanks(keys.length, count, random)
  const limit = limitDenying(counts, 0.3 * count)
  return { requests: Array.from(ranks, rank => String(keys[rank])), limit, denied: countOver(counts, limit) }
}

/** Returns the nanoseconds of processor time a decision takes. @param {Order} order */
async function decide(order) {
  const { requests, limit, denied: expected } = requestsOf(order)
  const limiter = limiterOf(order.workload, limit)
  const before = process.cpuUsage()
  const denied = await askAll(limiter, requests)
  const { user, system } = process.cpuUsage(before)
  if (Math.abs(denied - expected) > requests.length / 100)
    throw new Error(
      `${name}, (${order.workload}): ${denied} of ${requests.length} denied, expected ${expected}`,
    )
  return ((user + system) * 1000) / requests.length
}

/** Returns the bytes that stay of a key that asked once, itself included. @param {Order} order */
async function weigh({ count }) {
  const limiter = limiterOf('memory', 1_000_000)
  await askAll(limiter, newKeys(20_000, 10))
  const before = await settledBytes()
  await askAll(limiter, newKeys(count))
  const bytes = (await settledBytes()) - before
  // Once more, so that the limiter could not be collected before it was weighed.
  await askAll(limiter, newKeys(1))
  return bytes / count
}

/** Builds each key when it is needed, as a server does from a request: only the limiter keeps it. @param {number} count @param {number} [different] */
function* newKeys(count, different = count) {
  for (let index = 0; index < count; index++) yield `user:${index % different}`
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
