// Writes cjs/ from dist/ when the package is packed: the same modules for tools that cannot load ESM, such as Jest, and
// the same types, marked as CommonJS for compilers that reject to import ESM from it. Node never loads these files.
// Puts the page that errors point to beside it.

import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transform } from 'esbuild'

const DIST = fileURLToPath(new URL('../dist/', import.meta.url))
const CJS = fileURLToPath(new URL('../cjs/', import.meta.url))
const ERRORS = fileURLToPath(new URL('../../../docs/reference/errors.md', import.meta.url))
const PUBLISHED_DOCS = fileURLToPath(new URL('../docs/', import.meta.url))
/** On the same disk as the target, and never packed. */
const UNFINISHED = fileURLToPath(new URL('../node_modules/.cjs/', import.meta.url))
const FILE_URL = "const fileUrl = require('node:url').pathToFileURL(__filename).href"

async function toCommonJs(source) {
  const { code } = await transform(source, {
    format: 'cjs',
    platform: 'node',
    target: 'node20',
    // Jest has no import() outside of its experimental modules.
    supported: { 'dynamic-import': false },
    ...(source.includes('import.meta.url') && { define: { 'import.meta.url': 'fileUrl' }, banner: FILE_URL }),
  })
  return code
}

/**
 * Replaces an outdated file atomically, because two packings at once, as in tests, must read only whole files.
 */
async function put(path, text) {
  if ((await readFile(path, 'utf8').catch(() => null)) === text) return
  await mkdir(UNFINISHED, { recursive: true })
  await mkdir(dirname(path), { recursive: true })
  const unfinished = join(UNFINISHED, `${process.pid}-${basename(path)}`)
  await writeFile(unfinished, text)
  await rename(unfinished, path)
}

async function build() {
  const wanted = new Set(['package.json'])
  for (const name of await readdir(DIST, { recursive: true })) {
    if (!/\.(?:d\.ts|js)$/.test(name)) continue
    wanted.add(name)
    const text = await readFile(join(DIST, name), 'utf8')
    await put(join(CJS, name), name.endsWith('.js') ? await toCommonJs(text) : text)
  }
  await put(join(CJS, 'package.json'), '{ "type": "commonjs" }\n')
  await put(join(PUBLISHED_DOCS, 'errors.md'), await readFile(ERRORS, 'utf8'))
  for (const entry of await readdir(CJS, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    if (entry.isFile() && !wanted.has(relative(CJS, path))) await rm(path, { force: true })
  }
}

await build()
