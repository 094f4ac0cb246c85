import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { guardProcess } from './guard.js'

/**
 * A program we started.
 *
 * @typedef {object} Program
 * @property {number} pid
 * @property {RegExpExecArray} said What of its output said that it is ready.
 * @property {(signal: NodeJS.Signals) => void} signal
 * @property {() => Promise<void>} stop Asks it to end, and insists after five seconds.
 */

const PATIENCE_MS = 5_000

/**
 * Starts a program and resolves once its output says that it is ready. It does not outlive us.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {{ ready: RegExp, env?: NodeJS.ProcessEnv }} how
 * @returns {Promise<Program>}
 */
export async function startProgram(command, args, { ready, env = process.env }) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], env })
  const ended = once(child, 'exit')
  ended.catch(() => {})
  const { pid } = child
  if (pid === undefined) throw new Error(`${command} could not be started`)
  const letGo = guardProcess(pid)
  child.once('exit', letGo)
  let output = ''
  const said = await new Promise((resolve, reject) => {
    /** @param {Buffer} chunk */
    const listen = chunk => {
      output += chunk
      const found = ready.exec(output)
      if (found === null) return
      // From here on it is read so that it can go on writing, and forgotten.
      for (const stream of [child.stdout, child.stderr]) stream.off('data', listen).resume()
      resolve(found)
    }
    child.stdout.on('data', listen)
    child.stderr.on('data', listen)
    child.once('exit', code =>
      reject(new Error(`${command} ended with ${code} before it was ready:\n${output}`)),
    )
  })
  return {
    pid,
    said,
    signal: signal => void child.kill(signal),
    async stop() {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill('SIGTERM')
      const insist = setTimeout(() => child.kill('SIGKILL'), PATIENCE_MS)
      await ended
      clearTimeout(insist)
    },
  }
}
