import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startProgram } from './program.js'

/** @typedef {import('./program.js').Program & { port: number, adminUrl: string }} Gateway */

const MAIN = fileURLToPath(new URL('../../../packages/server/dist/main.js', import.meta.url))
const READY = /gateway +http:\/\/127\.0\.0\.1:(\d+)[\s\S]*decision API +(\S+)[\s\S]*Stop with Ctrl-C/

/**
 * Starts `headgate serve` on free ports with a policy file of this text, as a user would.
 *
 * @param {string} policyFile
 * @param {readonly string[]} flags
 * @param {readonly string[]} [nodeFlags]
 * @returns {Promise<Gateway>}
 */
export async function startGateway(policyFile, flags, nodeFlags = []) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-rig-'))
  const config = join(folder, 'headgate.yaml')
  writeFileSync(config, policyFile)
  const remove = () => rmSync(folder, { recursive: true, force: true })
  try {
    const args = ['serve', '--config', config, '--port', '0', '--admin-port', '0', ...flags]
    const program = await startProgram(process.execPath, [...nodeFlags, MAIN, ...args], {
      ready: READY,
      env: plainEnv(),
    })
    const stop = () => program.stop().finally(remove)
    return { ...program, port: Number(program.said[1]), adminUrl: String(program.said[2]), stop }
  } catch (error) {
    remove()
    throw error
  }
}

/** Removes flags from the environment, so that only ours count. */
function plainEnv() {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('HEADGATE_')))
}

/** Starts one of our processes, which prints the port it listens on. @param {string} file A URL of it. @param {...string} args */
export async function startListener(file, ...args) {
  const program = await startProgram(process.execPath, [fileURLToPath(file), ...args], { ready: /^(\d+)$/m })
  return { ...program, port: Number(program.said[1]) }
}
