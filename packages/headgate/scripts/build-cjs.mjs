// Writes cjs/ from dist/ when the package is packed: the same modules for tools that cannot load ESM, such as Jest, and
// the same types, marked as CommonJS for compilers that refuse to import ESM from it. Node never loads these files.
// Puts the page that errors point to beside it.

import { copyFile, mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transform } from 'esbuild'

const DIST = fileURLToPath(new URL('../dist/', import.meta.url))
const CJS = fileURLToPath(new URL('../cjs/', import.meta.url))
const ERRORS = fileURLToPath(new URL('../../../docs/reference/errors.md', import.meta.url))
const PUBLISHED_DOCS = fileURLToPath(new URL('../docs/', import.meta.url))
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

async function build() {
  await rm(CJS, { recursive: true, force: true })
  for (const name of await readdir(DIST, { recursive: true })) {
    const target = join(CJS, name)
    if (name.endsWith('.d.ts')) {
      await mkdir(dirname(target), { recursive: true })
      await copyFile(join(DIST, name), target)
    } else if (name.endsWith('.js')) {
      await mkdir(dirname(target), { recursive: true })
      await writeFile(target, await toCommonJs(await readFile(join(DIST, name), 'utf8')))
    }
  }
  await writeFile(join(CJS, 'package.json'), '{ "type": "commonjs" }\n')
  await mkdir(PUBLISHED_DOCS, { recursive: true })
  await copyFile(ERRORS, join(PUBLISHED_DOCS, 'errors.md'))
}

await build()
