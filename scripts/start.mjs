// `npm start`: the gateway on the embedded store, with the quickstart's policy file and the built-in upstream.
// Arguments are passed on: `npm start -- --port 9090`.

import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { prepare, root, say } from './prepare.mjs'

try {
  await prepare('running')
} catch (error) {
  say(error.message)
  process.exit(1)
}

// The server runs in this process rather than in a child: Ctrl-C reaches it once, and it starts that much sooner.
const main = join(root, 'packages', 'server', 'dist', 'main.js')
const config = join(root, 'examples', 'quickstart', 'headgate.yaml')
process.argv = [process.execPath, main, 'serve', '--config', config, '--demo', ...process.argv.slice(2)]
await import(pathToFileURL(main).href)
