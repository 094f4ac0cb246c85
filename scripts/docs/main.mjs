// `npm run docs` builds the site into site/. `npm run docs:dev` shows it on http://127.0.0.1:4173 and builds it again when a page
// changes.

import { createReadStream, statSync, watch } from 'node:fs'
import { createServer } from 'node:http'
import { extname, join, normalize } from 'node:path'
import { root, say, seconds } from '../prepare.mjs'
import { buildSite } from './build-site.mjs'

const TARGET = join(root, 'site')
const PORT = 4173
const TYPES = {
  ...{ '.html': 'text/html; charset=utf-8', '.css': 'text/css', '.js': 'text/javascript' },
  ...{ '.json': 'application/json', '.svg': 'image/svg+xml', '.png': 'image/png' },
}

function build() {
  const began = performance.now()
  try {
    const { pages } = buildSite(TARGET)
    say(`site/: ${pages} pages in ${seconds(performance.now() - began)}`)
    return true
  } catch (error) {
    say(error.message)
    return false
  }
}

function serve() {
  createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost')
    const inside = normalize(decodeURIComponent(pathname)).replace(/\/$/, '/index.html')
    const file = join(TARGET, inside)
    if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true)
      return response.writeHead(404).end('not found')
    response.writeHead(200, { 'Content-Type': TYPES[extname(file)] ?? 'application/octet-stream' })
    createReadStream(file).pipe(response)
  }).listen(PORT, '127.0.0.1', () => say(`http://127.0.0.1:${PORT}`))
  let timer
  watch(join(root, 'docs'), { recursive: true }, () => {
    clearTimeout(timer)
    timer = setTimeout(build, 100)
  })
}

const isBuilt = build()
if (process.argv.includes('--serve')) serve()
else if (!isBuilt) process.exitCode = 1
