/**
 * Loads all servers in rounds. In each round every server is loaded once, right before or after the framework without a
 * limiter, so that both see the same machine. Each round starts with another server.
 */
import { Child } from '../measure/child.js'
import { baseOf, ENTRIES, idOf } from './entries.js'

/** @typedef {import('./load-process.js').Load & { cpuUs: number }} Measured The load, and the server's processor time per request. */
/** @typedef {Measured & { baseCpuUs: number }} Load The same, with that of the framework without a limiter. */

const CONNECTIONS = 64
const LAP_SECONDS = 0.2
const WARM_UP_SECONDS = 0.5
const MOST_WARM_UPS = 20

/**
 * @param {string} redisUrl
 * @param {{ rounds: number, seconds: number, warmUpRequests: number, only: string }} order `only`: the start of the frameworks' names.
 * @param {(step: string) => void} tell
 * @returns {Promise<Map<string, Load[]>>} By server, one for each round.
 */
export async function loadInRounds(redisUrl, { rounds, seconds, warmUpRequests, only }, tell) {
  const entries = ENTRIES.filter(({ framework }) => framework.startsWith(only))
  const ids = entries.map(idOf)
  const generator = new Child('../http/load-process.js', [])
  /** @type {Map<string, { server: Child, port: number }>} */
  const servers = new Map()

  /** @param {string} id @param {number} forSeconds @returns {Promise<Measured>} */
  async function load(id, forSeconds) {
    const { server, port } = /** @type {{ server: Child, port: number }} */ (servers.get(id))
    // Brings connections, caches and leases back to how they are under load.
    await generator.request({ port, connections: CONNECTIONS, seconds: LAP_SECONDS })
    const beforeUs = Number(await server.request('cpu'))
    const loaded = /** @type {import('./load-process.js').Load} */ (
      await generator.request({ port, connections: CONNECTIONS, seconds: forSeconds })
    )
    const usedUs = Number(await server.request('cpu')) - beforeUs
    if (loaded.refused > 0)
      throw new Error(`${id}: ${loaded.refused} of ${loaded.requests} were not answered with 200`)
    return { ...loaded, cpuUs: usedUs / loaded.requests }
  }

  /** Warms a server up until its code is compiled, which takes requests, not seconds. @param {string} id */
  async function warmUp(id) {
    let requests = 0
    for (let times = 0; times < MOST_WARM_UPS && requests < warmUpRequests; times++) {
      requests += (await load(id, WARM_UP_SECONDS)).requests
    }
  }

  /** Measures a server and its base. Each of the two comes first in half of the rounds. @param {import('./entries.js').Entry} entry @param {boolean} baseFirst @returns {Promise<Load>} */
  async function loadBeside(entry, baseFirst) {
    const [id, base] = [idOf(entry), idOf(baseOf(entry))]
    if (id === base) {
      const loaded = await load(id, seconds)
      return { ...loaded, baseCpuUs: loaded.cpuUs }
    }
    const before = baseFirst ? await load(base, seconds) : null
    const loaded = await load(id, seconds)
    const { cpuUs } = before ?? (await load(base, seconds))
    return { ...loaded, baseCpuUs: cpuUs }
  }

  try {
    await generator.receive()
    for (const id of ids) {
      tell(`warm-up: ${id}`)
      const server = new Child('../http/server-process.js', [id, redisUrl])
      servers.set(id, { server, port: 0 })
      servers.set(id, { server, port: Number(await server.receive()) })
      await warmUp(id)
    }
    /** @type {Map<string, Load[]>} */
    const loads = new Map(ids.map(id => [id, []]))
    for (let round = 0; round < rounds; round++) {
      for (let turn = 0; turn < ids.length; turn++) {
        const entry = /** @type {import('./entries.js').Entry} */ (entries[(round + turn) % ids.length])
        const id = idOf(entry)
        tell(`round ${round + 1} of ${rounds}: ${id}`)
        loads.get(id)?.push(await loadBeside(entry, round % 2 === 0))
      }
    }
    return loads
  } finally {
    generator.stop()
    for (const { server } of servers.values()) server.stop()
  }
}
