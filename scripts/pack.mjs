// `npm run pack`: builds the published packages and packs them into packed/, to be installed or published from there.

import { mkdirSync, rmSync, statSync } from 'node:fs'
import { join, relative } from 'node:path'
import { packInto } from './packed-consumer.mjs'
import { prepare, root, say } from './prepare.mjs'

try {
  await prepare()
  const folder = join(root, 'packed')
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder)
  for (const { tarball } of await packInto(folder))
    say(`${relative(root, tarball)}: ${Math.round(statSync(tarball).size / 1_000)} kB`)
} catch (error) {
  say(error.message)
  process.exitCode = 1
}
