// Finds a redis-server binary, or installs one with the system's own package manager.
// Tests here run against a real Redis: our product is a script that Redis executes, and no imitation can run it.

import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

const OVERRIDE = 'HEADGATE_REDIS_SERVER'

const HOW_TO_INSTALL = `Install it once, then run this again:
  Debian, Ubuntu   sudo apt-get update && sudo apt-get install -y --no-install-recommends redis-server
  Fedora, RHEL     sudo dnf install -y redis        (Fedora 41 and later: valkey-compat-redis)
  Alpine           sudo apk add redis
  macOS            brew install redis
  Windows          use WSL, and the Debian line inside it
Or set ${OVERRIDE} to the path of a redis-server binary, 6.2 or newer.`

// Debian starts a service as soon as it is installed. A policy that answers 101 forbids that; it is removed
// again unless the machine had one of its own. The package lists may be fresh enough even if updating them fails.
const APT = `set -e
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' INT TERM
  printf '#!/bin/sh\\nexit 101\\n' > "$policy"
  chmod 755 "$policy"
fi
apt-get update -q || echo 'apt-get update failed; trying the package lists already here'
apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 redis-server
if [ -d /run/systemd/system ]; then systemctl disable redis-server || true; fi`

/** In order of preference. Only Debian's packages start a service by themselves. */
const PACKAGE_MANAGERS = [
  { command: 'apt-get', script: APT, needsRoot: true },
  { command: 'dnf', script: 'dnf install -y redis || dnf install -y valkey-compat-redis', needsRoot: true },
  { command: 'apk', script: 'apk add --no-cache redis', needsRoot: true },
  { command: 'brew', script: 'brew install redis', needsRoot: false },
]

async function isExecutableFile(path) {
  try {
    await access(path, constants.X_OK)
    return (await stat(path)).isFile()
  } catch {
    return false
  }
}

async function findOnPath(name) {
  for (const folder of (process.env.PATH ?? '').split(delimiter)) {
    if (folder === '') continue
    const path = resolve(folder, name)
    if (await isExecutableFile(path)) return path
  }
  return undefined
}

/**
 * The absolute path of a redis-server binary, or undefined when this machine has none.
 * Throws when HEADGATE_REDIS_SERVER is set but does not name an executable file.
 *
 * @returns {Promise<string | undefined>}
 */
export async function findRedisServer() {
  const override = process.env[OVERRIDE]
  if (!override) return findOnPath('redis-server')
  const path = resolve(override)
  if (await isExecutableFile(path)) return path
  throw new Error(`${OVERRIDE} is set to "${override}", which is not an executable file.`)
}

/** Runs a command, hands every line it prints to `log`, and resolves to its exit code. */
function run(command, args, log) {
  return new Promise(settle => {
    const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream }).on('line', line => log(`  ${line}`))
    }
    child.on('error', () => settle(127))
    child.on('close', code => settle(code ?? 1))
  })
}

async function findPackageManager() {
  for (const manager of PACKAGE_MANAGERS) {
    if (await findOnPath(manager.command)) return manager
  }
  return undefined
}

/** What to put in front of a command to run it as root: nothing, sudo, or undefined when neither is possible. */
async function rootPrefix() {
  if (process.getuid?.() === 0) return []
  // Without -n sudo could stop and ask for a password that nobody is there to type.
  const sudoWorks = (await run('sudo', ['-n', 'true'], () => {})) === 0
  return sudoWorks ? ['sudo', '-n'] : undefined
}

function cannotInstall(reason) {
  return new Error(
    `redis-server is not on PATH and could not be installed for you: ${reason}.\n${HOW_TO_INSTALL}`,
  )
}

async function install(log) {
  const manager = await findPackageManager()
  if (!manager) throw cannotInstall('no apt-get, dnf, apk or brew was found')
  const prefix = manager.needsRoot ? await rootPrefix() : []
  if (!prefix) throw cannotInstall(`${manager.command} needs root, and sudo asks for a password`)

  log(`redis-server is missing: installing it with ${manager.command} (usually under a minute)`)
  const [command, ...args] = [...prefix, 'sh', '-c', manager.script]
  const exitCode = await run(command, args, log)
  if (exitCode !== 0) throw cannotInstall(`${manager.command} ended with exit code ${exitCode}`)
}

/**
 * The absolute path of a redis-server binary, installed first if need be. No system service is left running.
 * Throws an Error that says what to type on each platform when it cannot be had.
 *
 * @param {{ log?: (line: string) => void }} [options]
 * @returns {Promise<string>}
 */
export async function ensureRedisServer({ log = line => process.stderr.write(`${line}\n`) } = {}) {
  const present = await findRedisServer()
  if (present) return present
  await install(log)
  const installed = await findRedisServer()
  if (!installed) throw cannotInstall('the package was installed, yet PATH has no redis-server')
  log(`redis-server is ready: ${installed}`)
  return installed
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    process.stdout.write(`${await ensureRedisServer()}\n`)
  } catch (error) {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}
