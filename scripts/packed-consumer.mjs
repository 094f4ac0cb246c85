// An empty project outside the workspace that has installed what would be published.

import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { npm, root, run } from './prepare.mjs'

/** Packs every package that is not private, and hands `work` the manifests with their tarballs and the folder they are in. */
export async function withTarballs(work) {
  const folder = mkdtempSync(join(tmpdir(), 'headgate-pack-'))
  try {
    const packages = []
    for (const manifest of publishedManifests()) {
      packages.push({ manifest, tarball: await pack(manifest.name, folder) })
    }
    return await work(packages, folder)
  } finally {
    rmSync(folder, { recursive: true, force: true })
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

async function pack(name, folder) {
  const before = new Set(readdirSync(folder))
  const [command, args] = npm('pack', '--silent', '--workspace', name, '--pack-destination', folder)
  const code = await run(command, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const tarball = readdirSync(folder).find(file => !before.has(file))
  if (code !== 0 || tarball === undefined)
    throw new Error(`npm pack of ${name} failed with exit code ${code}`)
  return join(folder, tarball)
}
