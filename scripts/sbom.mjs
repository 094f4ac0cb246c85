// `node scripts/sbom.mjs`: writes what an installation of each published package consists of to sbom/, as CycloneDX.
// npm's own list of a workspace omits hoisted packages, so the packages are installed elsewhere and listed there.

import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { installInto, withTarballs } from './packed-consumer.mjs'
import { ensureInstalled, npm, root, run, say } from './prepare.mjs'

const TARGET = join(root, 'sbom')

function billOf(consumer) {
  const [command, args] = npm('sbom', '--sbom-format', 'cyclonedx', '--omit', 'dev')
  const { stdout, status } = spawnSync(command, args, { cwd: consumer, encoding: 'utf8' })
  if (status !== 0) throw new Error(`npm sbom failed with exit code ${status}`)
  return stdout
}

/** Returns the packages of ours that another one depends on. */
function tarballsFor({ manifest }, packages) {
  const isNeeded = other =>
    other.manifest === manifest || other.manifest.name in (manifest.dependencies ?? {})
  return packages.filter(isNeeded).map(({ tarball }) => tarball)
}

async function writeBills() {
  await ensureInstalled()
  await run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc'), '-b'])
  mkdirSync(TARGET, { recursive: true })
  await withTarballs(async (packages, folder) => {
    for (const each of packages) {
      const file = `${each.manifest.name.replace(/^@/, '').replace('/', '-')}.cdx.json`
      const consumer = join(folder, `consumer-of-${file}`)
      await installInto(consumer, tarballsFor(each, packages))
      const bill = billOf(consumer)
      writeFileSync(join(TARGET, file), bill)
      say(`sbom/${file}: ${JSON.parse(bill).components.length} components`)
    }
  })
}

try {
  await writeBills()
} catch (error) {
  say(error.message)
  process.exitCode = 1
}
