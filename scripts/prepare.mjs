// Brings a clone to the point where it can run: dependencies installed, sources built. Does only what is missing,
// so that a second start costs a few file dates and nothing else.

import { spawn } from 'node:child_process'
import { existsSync, readdirSync, statSync, utimesSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

/** The folder of the workspace, wherever the command was typed. */
export const root = fileURLToPath(new URL('..', import.meta.url))

const PROGRESS_EVERY_MS = 10_000

/** npm's options for what building and running needs; none of it has a script to run. */
const RUNNING = ['--omit=dev', '--ignore-scripts']

/** Progress goes to stderr, so that stdout holds only a command's answer. */
export function say(line) {
  process.stderr.write(`${line}\n`)
}

/** Formats milliseconds for people. */
export function seconds(ms) {
  return `${(ms / 1000).toFixed(1)} s`
}

/** Runs a command in the workspace with our own streams, and resolves to its exit code. */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { cwd: root, stdio: 'inherit', ...options })
    // A signal that ends us must also end our child. Ctrl-C reaches both without our help.
    const end = signal => child.kill(signal)
    process.once('SIGTERM', end)
    child.on('error', reject)
    child.on('close', code => {
      process.off('SIGTERM', end)
      resolve(code ?? 1)
    })
  })
}

/** The npm that started us if one did, so that both are the same version. */
export function npm(...args) {
  const script = process.env.npm_execpath
  if (script?.endsWith('.js')) return [process.execPath, [script, ...args]]
  return [process.platform === 'win32' ? 'npm.cmd' : 'npm', args]
}

/** The JavaScript behind a command of an installed package, to be run with this Node and without a shell. */
export function bin(path) {
  return join(root, 'node_modules', path)
}

/**
 * Installs and builds what is missing or out of date. Throws an Error that says which step failed.
 * `running` is enough to build and run the product, in seconds; `everything` also brings the tools, frameworks and
 * runtimes that tests and benches use.
 *
 * @param {'running' | 'everything'} what
 */
export async function prepare(what = 'everything') {
  const installed = await ensureInstalled(what)
  await compile({ isDue: installed || buildIsDue() })
  await buildPage()
}

async function compile({ isDue }) {
  if (!isDue) return
  const began = new Date()
  // Types cannot be checked without the frameworks they are of. The compiler keeps note of that, and checks them later.
  const unchecked = isComplete() ? [] : ['--noCheck']
  await step('building', process.execPath, [bin('typescript/bin/tsc'), '-b', ...unchecked])
  // The compiler leaves its file alone when all that changed was, say, a test. Then only this date says we looked.
  for (const folder of buildFolders()) utimesSync(join(folder, 'dist', '.tsbuildinfo'), began, began)
}

/** Builds the dashboard into the server's package, which serves it. */
async function buildPage() {
  const folder = join(root, 'packages', 'dashboard')
  const built = modifiedAt(join(root, 'packages', 'server', 'dist', 'page', 'index.html'))
  const source = Math.max(
    newestIn(folder, name => isSettings(name) || name === 'index.html' || name === 'vite.config.ts'),
    newestBelow(join(folder, 'src')),
  )
  if (built >= source) return
  const vite = bin('vite/bin/vite.js')
  await step('building the dashboard', process.execPath, [vite, 'build', '--logLevel', 'warn', folder])
}

/** Installs what is missing or out of date, and resolves to whether anything was. Throws an Error if that fails. */
export async function ensureInstalled(what = 'everything') {
  const isDue = installIsDue() || (what === 'everything' && !isComplete())
  if (isDue) await install(what === 'everything' || isComplete() ? ['--include=dev'] : RUNNING)
  return isDue
}

/** Installs exactly what the lock says or, if npm rejects the lock, what the manifests allow. */
async function install(extent) {
  const what = 'installing dependencies'
  if (existsSync(join(root, 'package-lock.json'))) {
    try {
      return await step(what, ...npm('ci', ...extent))
    } catch (error) {
      say(`${error.message}\nTrying npm install instead of npm ci.`)
    }
  }
  await step(what, ...npm('install', '--no-save', ...extent))
}

async function step(what, command, args) {
  const began = performance.now()
  const elapsed = () => seconds(performance.now() - began)
  say(`${what} ...`)
  const progress = setInterval(() => say(`  still ${what}, ${elapsed()}`), PROGRESS_EVERY_MS)
  try {
    const code = await run(command, args, { stdio: ['ignore', 2, 2] })
    if (code !== 0) throw new Error(`${what} failed with exit code ${code}; what went wrong stands above.`)
    say(`${what}: done in ${elapsed()}`)
  } finally {
    clearInterval(progress)
  }
}

function installIsDue() {
  // npm writes this file last. It is missing during an installation and after a failed one.
  const installed = modifiedAt(join(root, 'node_modules', '.package-lock.json'))
  return installed === 0 || installed < modifiedAt(join(root, 'package-lock.json'))
}

/** Whether the tools of the tests are installed, too. */
function isComplete() {
  return existsSync(bin('vitest/package.json'))
}

function buildIsDue() {
  const shared = newestIn(root, name => /^tsconfig(\.base)?\.json$/.test(name))
  return buildFolders().some(folder => {
    const built = modifiedAt(join(folder, 'dist', '.tsbuildinfo'))
    return built < Math.max(shared, newestIn(folder, isSettings), newestBelow(join(folder, 'src')))
  })
}

function buildFolders() {
  const packages = join(root, 'packages')
  return readdirSync(packages)
    .map(name => join(packages, name))
    .filter(folder => existsSync(join(folder, 'tsconfig.json')))
}

function isSettings(name) {
  return name === 'package.json' || name === 'tsconfig.json'
}

function newestIn(folder, wanted) {
  return Math.max(
    0,
    ...readdirSync(folder)
      .filter(wanted)
      .map(name => modifiedAt(join(folder, name))),
  )
}

/** Folders count too: theirs is the only date that changes when a file is taken away. */
function newestBelow(folder) {
  let newest = modifiedAt(folder)
  for (const entry of readdirSync(folder, { withFileTypes: true, recursive: true })) {
    if (entry.name.endsWith('.test.ts')) continue
    newest = Math.max(newest, modifiedAt(join(entry.parentPath ?? entry.path, entry.name)))
  }
  return newest
}

/** Returns 0 for a missing file, which is older than every other. */
function modifiedAt(path) {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}
