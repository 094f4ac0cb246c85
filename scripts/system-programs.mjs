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
 * Of each program: the variable that names another binary, other names of its command and of its package than its own, and the
 * services that Debian would start with it.
 */
const PROGRAMS = {
  'redis-server': {
    variable: 'HEADGATE_REDIS_SERVER',
    // Fedora 41 and later have Valkey in its place.
    packages: { dnf: 'redis || dnf install -y valkey-compat-redis', apk: 'redis', brew: 'redis' },
    services: ['redis-server'],
  },
  nginx: { variable: 'HEADGATE_NGINX', commands: ['nginx', '/usr/sbin/nginx'], services: ['nginx'] },
  caddy: { variable: 'HEADGATE_CADDY', services: ['caddy'] },
  haproxy: {
    variable: 'HEADGATE_HAPROXY',
    commands: ['haproxy', '/usr/sbin/haproxy'],
    services: ['haproxy'],
  },
  apache2: {
    variable: 'HEADGATE_APACHE',
    commands: ['apache2', '/usr/sbin/apache2', 'httpd', '/usr/sbin/httpd'],
    packages: { 'apt-get': 'apache2-bin', dnf: 'httpd', apk: 'apache2-proxy', brew: 'httpd' },
  },
  python3: { variable: 'HEADGATE_PYTHON' },
  'php-cgi': {
    variable: 'HEADGATE_PHP_CGI',
    commands: ['php-cgi', 'php-cgi83'],
    packages: { dnf: 'php-cli', apk: 'php83-cgi', brew: 'php' },
  },
  prometheus: {
    variable: 'HEADGATE_PROMETHEUS',
    services: ['prometheus', 'prometheus-node-exporter'],
  },
  promtool: {
    variable: 'HEADGATE_PROMTOOL',
    packages: { 'apt-get': 'prometheus', apk: 'prometheus', brew: 'prometheus' },
    services: ['prometheus', 'prometheus-node-exporter'],
  },
  chromium: {
    variable: 'HEADGATE_CHROMIUM',
    commands: ['chromium', 'chromium-browser', 'google-chrome'],
  },
}

/** In order of preference, with the script that installs a package. */
const PACKAGE_MANAGERS = [
  { command: 'apt-get', needsRoot: true, script: aptScript },
  { command: 'dnf', needsRoot: true, script: name => `dnf install -y ${name}` },
  { command: 'apk', needsRoot: true, script: name => `apk add --no-cache ${name}` },
  { command: 'brew', needsRoot: false, script: name => `brew install ${name}` },
]

// Debian starts a service as soon as it is installed. A policy that answers 101 forbids that; it is removed
// again unless the machine had one of its own. The package lists may be fresh enough even if updating them fails.
function aptScript(name, services) {
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
apt-get install -q -y --no-install-recommends -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 ${name}
if [ -d /run/systemd/system ]; then systemctl disable ${services.join(' ')} || true; fi`
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
  const { commands = [name], variable } = PROGRAMS[name]
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

async function findPackageManager() {
  for (const manager of PACKAGE_MANAGERS) if (await findOnPath(manager.command)) return manager
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
  const { variable } = PROGRAMS[name]
  return new Error(
    `${name} is not on PATH and was not installed for you: ${reason}. Install it with your system's package manager (on Windows in WSL), or set ${variable} to the path of a binary, then run this again.`,
  )
}

/** Asks in a terminal. Where nobody can answer, as in CI, it goes ahead. */
async function isAgreed(question) {
  if (!process.stdin.isTTY || process.env.CI) return true
  const terminal = createInterface({ input: process.stdin, output: process.stderr })
  const answer = await new Promise(settle => {
    terminal.question(`${question} [y/N] `, settle)
    terminal.once('close', () => settle(''))
  })
  terminal.close()
  return /^y(es)?$/i.test(answer.trim())
}

async function install(name, log) {
  const { packages = {}, services = [] } = PROGRAMS[name]
  const manager = await findPackageManager()
  if (!manager) throw cannotInstall(name, 'there is no apt-get, dnf, apk or brew')
  const prefix = manager.needsRoot ? await rootPrefix() : []
  if (!prefix) throw cannotInstall(name, `${manager.command} needs root, and sudo asks for a password`)
  const what = packages[manager.command] ?? name
  const how = `${manager.command}${manager.needsRoot ? ', as root' : ''}`
  if (!(await isAgreed(`The tests need ${name}. Install the package ${what} with ${how}?`)))
    throw cannotInstall(name, 'you said no')
  log(`${name} is missing: installing ${what} with ${how} (usually under a minute)`)
  const [command, ...args] = [...prefix, 'sh', '-c', manager.script(what, services)]
  const exitCode = await run(command, args, log)
  if (exitCode !== 0) throw cannotInstall(name, `${manager.command} ended with exit code ${exitCode}`)
}

/**
 * Finds the absolute path of a program and installs it first if needed. Leaves no system service running.
 * In a terminal it asks first. Throws an Error that says what to do when it cannot be had.
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
