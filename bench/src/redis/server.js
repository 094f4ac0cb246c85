import { execFileSync, spawn } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { guardProcess } from '../rig/guard.js'
import { redisProgram } from '../rig/redis-program.js'
import { openIoredis } from './clients.js'

/**
 * @typedef {object} Server
 * @property {number} port
 * @property {number} pid
 * @property {string} url
 * @property {() => Promise<number>} cpuSeconds Processor time of the server since it started.
 * @property {() => Promise<number>} usedBytes
 * @property {() => Promise<void>} empty
 * @property {() => Promise<void>} stop
 */

/**
 * Starts a redis-server that keeps nothing on disk, and resolves once it answers.
 *
 * @param {readonly string[]} [args]
 * @param {number} [fixedPort] The port, for a server that replaces another.
 * @returns {Promise<Server>}
 */
export async function startServer(args = [], fixedPort) {
  const port = fixedPort ?? (await freePort())
  const dir = await mkdtemp(join(tmpdir(), 'headgate-bench-'))
  const settings = [
    '--port',
    String(port),
    '--bind',
    '127.0.0.1',
    '--dir',
    dir,
    '--save',
    '',
    '--appendonly',
    'no',
  ]
  const child = spawn(await redisProgram(), [...settings, ...args], { stdio: 'ignore' })
  const failed = new Promise((_, reject) => {
    child.once('error', reject)
    child.once('exit', code => reject(new Error(`redis-server ended with ${code}`)))
  })
  failed.catch(() => {})
  const letGo = guardProcess(/** @type {number} */ (child.pid))
  const url = `redis://127.0.0.1:${port}`
  const client = await Promise.race([connect(port, url), failed])
  /** @param {string} section @param {string} field */
  const info = async (section, field) =>
    Number(new RegExp(`^${field}:(.*)$`, 'm').exec(await client.info(section))?.[1])
  return {
    port,
    pid: child.pid ?? 0,
    url,
    cpuSeconds: async () => (await info('cpu', 'used_cpu_user')) + (await info('cpu', 'used_cpu_sys')),
    usedBytes: () => info('memory', 'used_memory'),
    empty: async () => void (await client.flushall()),
    async stop() {
      client.disconnect()
      const ended = new Promise(resolve => child.once('exit', resolve))
      // There is nothing to save, and this signal also ends a frozen server.
      child.kill('SIGKILL')
      await ended
      letGo()
      await rm(dir, { recursive: true, force: true })
    },
  }
}

/** @param {number} port @param {string} url */
async function connect(port, url) {
  while (await isFree(port)) await sleep(30)
  const client = await openIoredis(url)
  await client.ping()
  return client
}

/** Finds a port below Linux's ephemeral range, with room for the cluster bus 10,000 above. @returns {Promise<number>} */
async function freePort() {
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

/** Of the redis-server that `startServer` starts. */
export function redisVersion() {
  const said = execFileSync(process.env.HEADGATE_REDIS_SERVER ?? 'redis-server', ['--version'], {
    encoding: 'utf8',
  })
  return /v=(\S+)/.exec(said)?.[1] ?? ''
}
