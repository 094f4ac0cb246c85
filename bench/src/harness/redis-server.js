import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createClient } from 'redis'
import { cpuMicrosOf, startProgram } from './processes.js'

/** @typedef {Awaited<ReturnType<typeof startRedis>>} RedisServer */

/**
 * Starts a redis-server that keeps nothing on disk, and resolves once it accepts connections.
 *
 * @param {{ port?: number, under?: readonly string[], args?: readonly string[] }} [options] `port` for one that replaces
 *   another; `under` the words of a program to run it in.
 */
export async function startRedis({ port, under = [], args = [] } = {}) {
  port ??= await freePort()
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'))
  const settings = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    folder,
    '--save',
    '',
    '--appendonly',
    'no',
  ]
  const [command, ...words] = [...under, await redisProgram(), ...settings, ...args]
  const program = await startProgram(/** @type {string} */ (command), words, {
    ready: /Ready to accept connections/,
  })
  const url = `redis://127.0.0.1:${port}`
  return {
    port,
    url,
    pid: program.pid,
    signal: program.signal,
    cpuMicros: () => cpuMicrosOf(program.pid),
    async stop() {
      // It has nothing to save, and this signal also ends a frozen server.
      program.signal('SIGKILL')
      await program.stop()
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Connects as a tuned application does: node-redis without the timer it sets for every command. @param {string} url */
export async function openClient(url) {
  const client = createClient({ url, commandOptions: { timeout: 0 } })
  // What is under way rejects as well; without a listener the process would end.
  client.on('error', () => {})
  await client.connect()
  return client
}

/** Finds a port below the range that the kernel hands out to clients. @returns {Promise<number>} */
export async function freePort() {
  for (;;) {
    const port = 10_240 + Math.floor(Math.random() * 12_000)
    if (await isFree(port)) return port
  }
}

/** @param {number} port @returns {Promise<boolean>} */
function isFree(port) {
  return new Promise(resolve => {
    const server = createServer()
    server.once('error', () => resolve(false))
    server.listen(port, '127.0.0.1', () => server.close(() => resolve(true)))
  })
}

/** Finds redis-server, and installs it if it is missing. @returns {Promise<string>} */
export async function redisProgram() {
  const finder = new URL('../../../scripts/system-programs.mjs', import.meta.url).href
  const { ensureProgram } = await import(finder)
  return ensureProgram('redis-server')
}
