import { execFile } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'
import { startServer } from './server.js'

/** @typedef {import('./server.js').Server} Server */

/** The start of a cluster's address; that of one server starts with `redis:`. */
export const CLUSTER = 'redis+cluster:'

const run = promisify(execFile)

/** Starts a cluster of primaries without replicas. @param {number} primaries */
export async function startCluster(primaries) {
  const settings = ['--cluster-enabled', 'yes']
  const servers = await Promise.all(Array.from({ length: primaries }, () => startServer(settings)))
  const stop = async () => void (await Promise.all(servers.map(server => server.stop())))
  try {
    const [first] = servers
    for (const [index, server] of servers.entries()) {
      const from = Math.floor((index * 16_384) / primaries)
      const to = Math.floor(((index + 1) * 16_384) / primaries) - 1
      await cli(server, 'CLUSTER', 'ADDSLOTSRANGE', String(from), String(to))
      await cli(server, 'CLUSTER', 'SET-CONFIG-EPOCH', String(index + 1))
      if (server !== first) await cli(server, 'CLUSTER', 'MEET', '127.0.0.1', String(first?.port))
    }
    for (const server of servers) await untilComplete(server, primaries)
    const cpuSeconds = async () =>
      (await Promise.all(servers.map(server => server.cpuSeconds()))).reduce((sum, used) => sum + used, 0)
    return { url: `${CLUSTER}//127.0.0.1:${first?.port}`, cpuSeconds, stop }
  } catch (error) {
    await stop()
    throw error
  }
}

/** @param {Server} server @param {number} primaries */
async function untilComplete(server, primaries) {
  for (let waited = 0; waited < 300; waited++) {
    const state = await cli(server, 'CLUSTER', 'INFO')
    if (state.includes('cluster_state:ok') && state.includes(`cluster_size:${primaries}`)) return
    await sleep(50)
  }
  throw new Error(`the cluster of ${primaries} did not form`)
}

/** @param {Server} server @param {...string} words */
async function cli(server, ...words) {
  const { stdout } = await run('redis-cli', ['-p', String(server.port), ...words])
  return stdout
}
