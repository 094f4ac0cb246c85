// Packs the published packages and checks them from outside: lints the tarballs, and imports and requires every entry
// point in a project outside the workspace.

import { spawnSync } from 'node:child_process'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { installInto, withTarballs } from './packed-consumer.mjs'
import { bin, run, say } from './prepare.mjs'

/** JSON, which TypeScript's `node10` cannot find behind `exports`, and the server's own entry, which is an ES module only. */
const WITHOUT_TYPES = ['--exclude-entrypoints', 'config/schema.json', 'package.json', 'internal']

/** Entry points that import their framework, and where that is in `node_modules`. All others must load without any. */
const FRAMEWORKS = {
  'headgate/next': 'next',
  'headgate/nest': '@nestjs',
  'headgate/trpc': '@trpc',
}

/** Resolves to 0 if all packages are sound, else to 1; the reasons are printed on the way. */
export function checkPackages() {
  return withTarballs(async (packages, folder) => {
    let failures = 0
    for (const { manifest, tarball } of packages) failures += await lint(manifest, tarball)
    failures += await tryOut(packages, join(folder, 'consumer'))
    return failures === 0 ? 0 : 1
  })
}

/** Counts the linters that object to a tarball. */
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
  await installInto(
    consumer,
    packages.map(({ tarball }) => tarball),
  )
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
  // Runs it as people type it. Without --no-install, npx would look for a missing command in the registry.
  const { stdout, status } = spawnSync('npx', ['--no-install', command, '--version'], {
    cwd: consumer,
    encoding: 'utf8',
  })
  const passed = status === 0 && stdout.trim() === version
  say(
    `${passed ? 'ok    ' : 'FAILED'}  ${command} --version: expected ${version}, got ${JSON.stringify(stdout)}`,
  )
  return passed ? 0 : 1
}
