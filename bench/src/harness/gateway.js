import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startProgram } from './processes.js'

const MAIN = fileURLToPath(new URL('../../../packages/server/dist/main.js', import.meta.url))
const READY = /gateway +http:\/\/127\.0\.0\.1:(\d+)[\s\S]*decision API +(\S+)[\s\S]*Stop with Ctrl-C/

/**
 * Starts `headgate serve` on free ports with a policy file of this text, as a user would.
 *
 * @param {string} policyFile
 * @param {readonly string[]} flags
 * @param {readonly string[]} [nodeFlags]
 */
export async function startGateway(policyFile, flags, nodeFlags = []) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-bench-'))
  const config = join(folder, 'headgate.yaml')
  writeFileSync(config, policyFile)
  const remove = () => rmSync(folder, { recursive: true, force: true })
  // Only our flags count, not those of the environment.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([name]) => !name.startsWith('HEADGATE_')),
  )
  try {
    const args = ['serve', '--config', config, '--port', '0', '--admin-port', '0', ...flags]
    const program = await startProgram(process.execPath, [...nodeFlags, MAIN, ...args], { ready: READY, env })
    const stop = () => program.stop().finally(remove)
    return { ...program, port: Number(program.said[1]), adminUrl: String(program.said[2]), stop }
  } catch (error) {
    remove()
    throw error
  }
}

/** Starts one of our processes, which prints the port it listens on. @param {URL} file @param {...string} args */
export async function startListener(file, ...args) {
  const program = await startProgram(process.execPath, [fileURLToPath(file), ...args], { ready: /^(\d+)$/m })
  return { ...program, port: Number(program.said[1]) }
}
