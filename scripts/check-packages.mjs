// Packs what would be published and looks at it from outside: what linters say of the tarball, and whether every
// entry point can be imported and required where nothing of the workspace is near.

import { spawnSync } from 'node:child_process'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { bin, npm, root, run, say } from './prepare.mjs'

/** JSON, which TypeScript's `node10` cannot find behind `exports`. */
const WITHOUT_TYPES = ['--exclude-entrypoints', 'config/schema.json', 'package.json']

/** Entry points that import their framework, and where that is in `node_modules`. All others must load without any. */
const FRAMEWORKS = {
  'headgate/next': 'next',
  'headgate/nest': '@nestjs',
  'headgate/trpc': '@trpc',
  'headgate/opentelemetry': '@opentelemetry',
}

/** Resolves to 0 if all packages are sound, else to 1; the reasons are printed on the way. */
export async function checkPackages() {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pack-'))
  try {
    const packages = []
    for (const manifest of publishedManifests()) {
      packages.push({ manifest, tarball: await pack(manifest.name, folder) })
    }
    let failures = 0
    for (const { manifest, tarball } of packages) failures += await lint(manifest, tarball)
    failures += await tryOut(packages, join(folder, 'consumer'))
    return failures === 0 ? 0 : 1
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function publishedManifests() {
  const packages = join(root, 'packages')
  return readdirSync(packages)
    .map(name => JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8')))
    .filter(manifest => !manifest.private)
}

async function pack(name, folder) {
  const before = new Set(readdirSync(folder))
  const [command, args] = npm('pack', '--silent', '--workspace', name, '--pack-destination', folder)
  const code = await run(command, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const tarball = readdirSync(folder).find(file => !before.has(file))
  if (code !== 0 || tarball === undefined)
    throw new Error(`npm pack of ${name} failed with exit code ${code}`)
  return join(folder, tarball)
}

/** How many of the linters object to a tarball. */
async function lint({ name, exports }, tarball) {
  say(`${name}: publint`)
  const tools = [[bin('publint/src/cli.js'), tarball, '--strict']]
  // Without exports there are no types to resolve.
  if (exports) tools.push([bin('@arethetypeswrong/cli/dist/index.js'), tarball, ...WITHOUT_TYPES])
  let failures = 0
  for (const args of tools) if ((await run(process.execPath, args)) !== 0) failures++
  return failures
}

/** Installs the tarballs into an empty folder and loads every entry point both ways. */
async function tryOut(packages, consumer) {
  mkdirSync(consumer)
  writeFileSync(join(consumer, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
  const tarballs = packages.map(({ tarball }) => tarball)
  const [command, args] = npm(
    'install',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    '--ignore-scripts',
    ...tarballs,
  )
  const code = await run(command, args, { cwd: consumer, stdio: ['ignore', 'ignore', 'inherit'] })
  if (code !== 0) throw new Error(`npm install of the tarballs failed with exit code ${code}`)
  let failures = 0
  for (const { manifest } of packages) {
    for (const specifier of entryPoints(manifest)) {
      const framework = FRAMEWORKS[specifier]
      if (framework) symlinkSync(bin(framework), join(consumer, 'node_modules', framework), 'junction')
      failures += await load(consumer, specifier)
    }
    for (const command of Object.keys(manifest.bin ?? {}))
      failures += start(consumer, command, manifest.version)
  }
  return failures
}

function entryPoints({ name, exports }) {
  return Object.keys(exports ?? {}).map(subpath => name + subpath.slice(1))
}

async function load(consumer, specifier) {
  const attributes = specifier.endsWith('.json') ? `, { with: { type: 'json' } }` : ''
  const ways = [
    ['import', 'module', `await import(${JSON.stringify(specifier)}${attributes})`],
    ['require', 'commonjs', `require(${JSON.stringify(specifier)})`],
  ]
  let failures = 0
  for (const [way, type, source] of ways) {
    const code = await run(process.execPath, ['--no-warnings', `--input-type=${type}`, '-e', source], {
      cwd: consumer,
    })
    say(`${code === 0 ? 'ok    ' : 'FAILED'}  ${way} ${specifier}`)
    if (code !== 0) failures++
  }
  return failures
}

function start(consumer, command, version) {
  const path = join(consumer, 'node_modules', '.bin', command)
  const { stdout, status } = spawnSync(path, ['--version'], { encoding: 'utf8' })
  const passed = status === 0 && stdout.trim() === version
  say(
    `${passed ? 'ok    ' : 'FAILED'}  ${command} --version: expected ${version}, got ${JSON.stringify(stdout)}`,
  )
  return passed ? 0 : 1
}
