// Lets plain `node` import the helpers of the tests, which are TypeScript, on versions that cannot by themselves.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { transform } from 'esbuild'

/** Tests import a module by the name of its compiled file. */
export function resolve(specifier, context, next) {
  if (specifier.startsWith('.') && specifier.endsWith('.js') && context.parentURL?.endsWith('.ts')) {
    const source = new URL(specifier.replace(/\.js$/, '.ts'), context.parentURL)
    if (existsSync(source)) return next(source.href, context)
  }
  return next(specifier, context)
}

export async function load(url, context, next) {
  if (!url.endsWith('.ts')) return next(url, context)
  const text = await readFile(fileURLToPath(url), 'utf8')
  const { code } = await transform(text, { loader: 'ts', format: 'esm', target: 'node20' })
  return { format: 'module', source: code, shortCircuit: true }
}
