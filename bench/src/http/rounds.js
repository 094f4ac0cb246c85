/** Rounds over all servers: in each, every server is loaded once, and each round begins with another one. */
import { Child } from '../measure/child.js'
import { ENTRIES, idOf } from './entries.js'

/** @typedef {import('./load-process.js').Load} Load */

const CONNECTIONS = 64

/**
 * @param {string} redisUrl
 * @param {{ rounds: number, seconds: number, warmUpSeconds: number }} order
 * @param {(step: string) => void} tell
 * @returns {Promise<Map<string, Load[]>>} By server, one for each round.
 */
export async function loadInRounds(redisUrl, { rounds, seconds, warmUpSeconds }, tell) {
  const ids = ENTRIES.map(idOf)
  const generator = new Child('../http/load-process.js', [])
  /** @type {Map<string, { server: Child, port: number }>} */
  const servers = new Map()

  /** @param {string} id @param {number} forSeconds */
  async function load(id, forSeconds) {
    const port = servers.get(id)?.port
    const loaded = /** @type {Load} */ (
      await generator.request({ port, connections: CONNECTIONS, seconds: forSeconds })
    )
    if (loaded.refused > 0)
      throw new Error(`${id}: ${loaded.refused} of ${loaded.requests} were not answered with 200`)
    return loaded
  }

  try {
    await generator.receive()
    for (const id of ids) {
      tell(`warm-up: ${id}`)
      const server = new Child('../http/server-process.js', [id, redisUrl])
      servers.set(id, { server, port: 0 })
      servers.set(id, { server, port: Number(await server.receive()) })
      await load(id, warmUpSeconds)
    }
    /** @type {Map<string, Load[]>} */
    const loads = new Map(ids.map(id => [id, []]))
    for (let round = 0; round < rounds; round++) {
      for (let turn = 0; turn < ids.length; turn++) {
        const id = /** @type {string} */ (ids[(round + turn) % ids.length])
        tell(`round ${round + 1} of ${rounds}: ${id}`)
        loads.get(id)?.push(await load(id, seconds))
      }
    }
    return loads
  } finally {
    generator.stop()
    for (const { server } of servers.values()) server.stop()
  }
}
