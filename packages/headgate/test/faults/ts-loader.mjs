// Lets plain `node` import the helpers of the tests, which are TypeScript, on versions that cannot by themselves.
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { transform } from 'esbuild'

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context)
  const text = await readFile(fileURLToPath(url), 'utf8')
  const { code } = await transform(text, { loader: 'ts', format: 'esm', target: 'node20' })
  return { format: 'module', source: code, shortCircuit: true }
}
