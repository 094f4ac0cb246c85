// Installs and builds what is missing, then runs a program of the workspace in this process:
// `node scripts/prepared.mjs bench/src/demo/main.js --seconds 300`.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { prepare, root, say } from './prepare.mjs'

const [file, ...args] = process.argv.slice(2)
try {
  await prepare('running')
} catch (error) {
  say(error.message)
  process.exit(1)
}
const path = join(root, file)
process.argv = [process.execPath, path, ...args]
await import(pathToFileURL(path).href)
