/** Checks the page of bundle sizes: what an app that bundles the library carries, minified and compressed. */
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gzipSync } from 'node:zlib'
import { build, type Plugin } from 'esbuild'
import { expect, it } from 'vitest'

const SRC = fileURLToPath(new URL('../../src/', import.meta.url))
const PAGE = readFileSync(new URL('../../../../docs/reference/bundle-size.md', import.meta.url), 'utf8')

/** The rows of the page: the import, and its maximum in kilobytes. */
const ROWS = [...PAGE.matchAll(/^\| `(import .+)` \| ≤ (\d+) \|/gm)].map(
  ([, imports = '', most = '']) => [imports, Number(most)] as const,
)
const ADAPTER = Number(/≤ (\d+) kB on top/.exec(PAGE)?.[1])
const ADAPTERS = ['express', 'fastify', 'hono', 'koa', 'next', 'nest', 'trpc', 'node-http', 'fetch']

/**
 * The published package is a few files of many modules each, in which a bundler drops what it can see to be without effect,
 * and not whole modules because the manifest says so. So that what is measured is what users get, no module is free of effects.
 */
const inFewFiles: Plugin = {
  name: 'in-few-files',
  setup({ onResolve, resolve }) {
    onResolve({ filter: /^\./ }, async ({ path, importer, resolveDir, kind, pluginData }) => {
      if (pluginData === inFewFiles) return undefined
      const found = await resolve(path, { importer, resolveDir, kind, pluginData: inFewFiles })
      return { ...found, sideEffects: true }
    })
  },
}

async function kilobytesOf(imports: string): Promise<number> {
  // The bundler keeps everything that is exported again, used or not.
  const contents = imports
    .replaceAll('import ', 'export ')
    .replaceAll("'headgate/", "'./")
    .replaceAll("'headgate'", "'./index.ts'")
  const { outputFiles } = await build({
    stdin: { contents, resolveDir: SRC, loader: 'ts' },
    bundle: true,
    minify: true,
    write: false,
    format: 'esm',
    platform: 'node',
    target: 'es2023',
    packages: 'external',
    plugins: [inFewFiles],
  })
  return gzipSync(outputFiles[0]?.contents ?? '', { level: 9 }).length / 1_000
}

it.each(ROWS)('%s is at most %i kB', async (imports, most) => {
  const size = await kilobytesOf(imports)
  expect(size).toBeLessThanOrEqual(most)
  // A bound far above the actual size would be meaningless.
  expect(size).toBeGreaterThan(most * 0.8)
})

it('the page says something of an import', () => expect(ROWS.length).toBeGreaterThan(2))

it.each(ADAPTERS)('headgate/%s stays within what the page says of adapters', async adapter => {
  const alone = await kilobytesOf("import * as headgate from 'headgate'")
  const both = `import * as headgate from 'headgate'; import * as adapter from 'headgate/${adapter}'`
  expect((await kilobytesOf(both)) - alone).toBeLessThanOrEqual(ADAPTER)
})
