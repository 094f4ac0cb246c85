// Finds the programs that tests talk to, or installs them with the system's own package manager. Tests here run against
// the real ones: our product is a script that Redis executes, headers that nginx passes on, a page that a browser shows.
//
// `node scripts/system-programs.mjs nginx` prints where it is.

import { spawn } from 'node:child_process'
import { constants } from 'node:fs'
import { access, stat } from 'node:fs/promises'
import { delimiter, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { pathToFileURL } from 'node:url'

/**
 * Of each program: the commands it may be called by, the variable that names another one, the packages by package
 * manager, and the services that Debian would start with it.
 */
const PROGRAMS = {
  'redis-server': {
    commands: ['redis-server'],
    variable: 'HEADGATE_REDIS_SERVER',
    // Fedora 41 and later have Valkey in its place.
    packages: { 'apt-get': 'redis-server', dnf: 'redis', apk: 'redis', brew: 'redis' },
    instead: { dnf: 'valkey-compat-redis' },
    services: ['redis-server'],
    atLeast: ', 6.2 or newer',
  },
  nginx: {
    commands: ['nginx', '/usr/sbin/nginx'],
    variable: 'HEADGATE_NGINX',
    packages: { 'apt-get': 'nginx', dnf: 'nginx', apk: 'nginx', brew: 'nginx' },
    services: ['nginx'],
  },
  caddy: {
    commands: ['caddy'],
    variable: 'HEADGATE_CADDY',
    packages: { 'apt-get': 'caddy', dnf: 'caddy', apk: 'caddy', brew: 'caddy' },
    services: ['caddy'],
  },
  python3: {
    commands: ['python3'],
    variable: 'HEADGATE_PYTHON',
    packages: { 'apt-get': 'python3', dnf: 'python3', apk: 'python3', brew: 'python3' },
    services: [],
  },
  'php-cgi': {
    commands: ['php-cgi', 'php-cgi83'],
    variable: 'HEADGATE_PHP_CGI',
    packages: { 'apt-get': 'php-cgi', dnf: 'php-cli', apk: 'php83-cgi', brew: 'php' },
    services: [],
  },
  prometheus: {
    commands: ['prometheus'],
    variable: 'HEADGATE_PROMETHEUS',
    packages: { 'apt-get': 'prometheus', apk: 'prometheus', brew: 'prometheus' },
    services: ['prometheus', 'prometheus-node-exporter'],
  },
  promtool: {
    commands: ['promtool'],
    variable: 'HEADGATE_PROMTOOL',
    packages: { 'apt-get': 'prometheus', apk: 'prometheus', brew: 'prometheus' },
    services: ['prometheus', 'prometheus-node-exporter'],
  },
  chromium: {
    commands: ['chromium', 'chromium-browser', 'google-chrome'],
    variable: 'HEADGATE_CHROMIUM',
    packages: { 'apt-get': 'chromium', dnf: 'chromium', apk: 'chromium', brew: 'chromium' },
    services: [],
  },
}

/** In order of preference. */
const PACKAGE_MANAGERS = [
  { command: 'apt-get', system: 'Debian, Ubuntu', script: aptScript, needsRoot: true },
  { command: 'dnf', system: 'Fedora, RHEL', script: dnfScript, needsRoot: true },
  {
    command: 'apk',
    system: 'Alpine',
    script: ({ packages }) => `apk add --no-cache ${packages.apk}`,
    needsRoot: true,
  },
  {
    command: 'brew',
    system: 'macOS',
    script: ({ packages }) => `brew install ${packages.brew}`,
    needsRoot: false,
  },
]

// Debian starts a service as soon as it is installed. A policy that answers 101 forbids that; it is removed
// again unless the machine had one of its own. The package lists may be fresh enough even if updating them fails.
function aptScript({ packages, services }) {
  return `set -e
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
  trap 'rm -f "$policy"' EXIT
  trap 'exit 1' INT TERM
  printf '#!/bin/sh\\nexit 101\\n' > "$policy"
  chmod 755 "$policy"
fi
apt-get update -q || echo 'apt-get update failed; trying the package lists already here'
apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 ${packages['apt-get']}
if [ -d /run/systemd/system ]; then systemctl disable ${services.join(' ')} || true; fi`
}

function dnfScript({ packages, instead }) {
  const other = instead === undefined ? '' : ` || dnf install -y ${instead.dnf}`
  return `dnf install -y ${packages.dnf}${other}`
}

function howToInstall({ packages, variable, atLeast = '' }, name) {
  const line = ({ command, system, needsRoot }) => {
    const verb = command === 'apk' ? 'add' : 'install'
    const flags = needsRoot && command !== 'apk' ? ' -y' : ''
    return `  ${system.padEnd(16)} ${needsRoot ? 'sudo ' : ''}${command} ${verb}${flags} ${packages[command]}`
  }
  const lines = PACKAGE_MANAGERS.filter(({ command }) => packages[command] !== undefined).map(line)
  return `Install it once, then run this again:
${lines.join('\n')}
  Windows          use WSL, and the Debian line inside it
Or set ${variable} to the path of a ${name} binary${atLeast}.`
}

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
 * Finds the absolute path of a program; undefined if this machine does not have it.
 * Throws when its variable is set but does not name an executable file.
 *
 * @param {keyof typeof PROGRAMS} name
 * @returns {Promise<string | undefined>}
 */
export async function findProgram(name) {
  const { commands, variable } = PROGRAMS[name]
  const override = process.env[variable]
  if (override) {
    const path = resolve(override)
    if (await isExecutableFile(path)) return path
    throw new Error(`${variable} is set to "${override}", which is not an executable file.`)
  }
  for (const command of commands) {
    const found = await findOnPath(command)
    if (found !== undefined) return found
  }
  return undefined
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

async function findPackageManager({ packages }) {
  for (const manager of PACKAGE_MANAGERS) {
    if (packages[manager.command] !== undefined && (await findOnPath(manager.command))) return manager
  }
  return undefined
}

/** The prefix that runs a command as root: nothing, sudo, or undefined when neither is possible. */
async function rootPrefix() {
  if (process.getuid?.() === 0) return []
  // Without -n, sudo could wait for a password that nobody types.
  const sudoWorks = (await run('sudo', ['-n', 'true'], () => {})) === 0
  return sudoWorks ? ['sudo', '-n'] : undefined
}

function cannotInstall(name, reason) {
  return new Error(
    `${name} is not on PATH and could not be installed for you: ${reason}.\n${howToInstall(PROGRAMS[name], name)}`,
  )
}

async function install(name, log) {
  const program = PROGRAMS[name]
  const manager = await findPackageManager(program)
  if (!manager) throw cannotInstall(name, 'no apt-get, dnf, apk or brew that has it was found')
  const prefix = manager.needsRoot ? await rootPrefix() : []
  if (!prefix) throw cannotInstall(name, `${manager.command} needs root, and sudo asks for a password`)

  log(`${name} is missing: installing it with ${manager.command} (usually under a minute)`)
  const [command, ...args] = [...prefix, 'sh', '-c', manager.script(program)]
  const exitCode = await run(command, args, log)
  if (exitCode !== 0) throw cannotInstall(name, `${manager.command} ended with exit code ${exitCode}`)
}

/**
 * Finds the absolute path of a program and installs it first if needed. Leaves no system service running.
 * Throws an Error that says what to type on each platform when it cannot be had.
 *
 * @param {keyof typeof PROGRAMS} name
 * @param {{ log?: (line: string) => void }} [options]
 * @returns {Promise<string>}
 */
export async function ensureProgram(name, { log = line => process.stderr.write(`${line}\n`) } = {}) {
  const present = await findProgram(name)
  if (present) return present
  await install(name, log)
  const installed = await findProgram(name)
  if (!installed) throw cannotInstall(name, `the package was installed, yet PATH has no ${name}`)
  log(`${name} is ready: ${installed}`)
  return installed
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  try {
    process.stdout.write(`${await ensureProgram(process.argv[2] ?? 'redis-server')}\n`)
  } catch (error) {
    process.stderr.write(`${error.message}\n`)
    process.exitCode = 1
  }
}
