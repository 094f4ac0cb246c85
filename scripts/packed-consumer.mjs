// The packages as they are published, and an empty project outside the workspace that has installed them.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { npm, root, run } from './prepare.mjs'

/** Packs every package that is not private, and hands `work` the manifests with their tarballs and the folder they are in. */
export async function withTarballs(work) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pack-'))
  try {
    return await work(await packInto(folder), folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Packs every package that is not private into a folder, and resolves to the manifests with their tarballs. */
export async function packInto(folder) {
  const library = mkdtempSync(join(tmpdir(), 'headgate-library-'))
  try {
    // Needs what may have been installed only now.
    const { buildPackage } = await import('../packages/headgate/scripts/build-package.mjs')
    await buildPackage(library)
    const packages = []
    for (const manifest of publishedManifests()) {
      const what = manifest.name === 'headgate' ? [library] : ['--workspace', manifest.name]
      packages.push({ manifest, tarball: await pack(what, folder) })
    }
    return packages
  } finally {
    rmSync(library, { recursive: true, force: true })
  }
}

/** Installs tarballs into a new project in `consumer`, without running anything of theirs. */
export async function installInto(consumer, tarballs) {
  mkdirSync(consumer)
  const manifest = { name: 'consumer', version: '0.0.0', private: true, type: 'module' }
  writeFileSync(join(consumer, 'package.json'), JSON.stringify(manifest))
  const quietly = ['--prefer-offline', '--no-audit', '--no-fund', '--ignore-scripts']
  const [command, args] = npm('install', ...quietly, ...tarballs)
  const code = await run(command, args, { cwd: consumer, stdio: ['ignore', 'ignore', 'inherit'] })
  if (code !== 0) throw new Error(`npm install of the tarballs failed with exit code ${code}`)
}

function publishedManifests() {
  const packages = join(root, 'packages')
  return readdirSync(packages)
    .map(name => JSON.parse(readFileSync(join(packages, name, 'package.json'), 'utf8')))
    .filter(manifest => !manifest.private)
}

async function pack(what, folder) {
  const before = new Set(readdirSync(folder))
  const [command, args] = npm('pack', '--silent', ...what, '--pack-destination', folder)
  const code = await run(command, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const tarball = readdirSync(folder).find(file => !before.has(file))
  if (code !== 0 || tarball === undefined)
    throw new Error(`npm pack ${what.join(' ')} failed with exit code ${code}`)
  return join(folder, tarball)
}
