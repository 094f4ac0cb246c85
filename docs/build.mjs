// `npm run docs` builds the site into site/, with the reference of the API and what coding assistants read. `npm run docs -- --dev`
// shows it and follows changes.

import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { ensureInstalled } from '../scripts/prepare.mjs'

const HERE = fileURLToPath(new URL('.', import.meta.url))
const { values } = parseArgs({ options: { dev: { type: 'boolean' }, out: { type: 'string' } } })

try {
  // A program that says where to build, such as a test, has everything installed.
  if (values.out === undefined) await ensureInstalled()
  const { writeApiReference } = await import('./.vitepress/api-reference.mjs')
  await writeApiReference()
  const { build, createServer } = await import('vitepress')
  if (values.dev) {
    const server = await createServer(HERE)
    await server.listen()
    server.printUrls()
  } else await build(HERE, values.out === undefined ? {} : { outDir: values.out })
} catch (error) {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
}
