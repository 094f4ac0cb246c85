import { builtinModules } from 'node:module'
import { fileURLToPath } from 'node:url'
import { build, type Platform } from 'esbuild'
import { describe, expect, it } from 'vitest'

const SOURCE = fileURLToPath(new URL('../src/', import.meta.url))

/** Globals that only Node has; one of our own variables may have such a name. */
const NODE_ONLY = /\brequire\(|\bprocess\.\w+|\bBuffer\.\w+|\b__dirname\b|\bsetImmediate\(/

/** Bundles as for an edge runtime: everything in one file, and the modules requested at run time. */
async function bundle(code: string, platform: Platform): Promise<{ text: string; asked: string[] }> {
  const asked: string[] = []
  const result = await build({
    stdin: { contents: code, resolveDir: SOURCE, loader: 'ts' },
    bundle: true,
    write: false,
    format: 'esm',
    platform,
    logLevel: 'silent',
    plugins: [
      {
        name: 'note-what-is-not-ours',
        setup(esbuild) {
          // Sources import each other by the name of the built file.
          esbuild.onResolve({ filter: /^\.{1,2}\// }, ({ path, resolveDir }) => ({
            path: fileURLToPath(new URL(path.replace(/\.js$/, '.ts'), `file://${resolveDir}/`)),
          }))
          esbuild.onResolve({ filter: /^[^.]/ }, ({ path, kind }) => {
            if (kind === 'entry-point') return undefined
            asked.push(path)
            return { path, external: true }
          })
        },
      },
    ],
  })
  return { text: result.outputFiles[0]?.text ?? '', asked }
}

function isBuiltin(module: string): boolean {
  return module.startsWith('node:') || builtinModules.includes(module)
}

describe.each(['neutral', 'browser'] as const)('bundled for the platform %s', platform => {
  it('the bundled library asks for nothing', async () => {
    const { text, asked } = await bundle("export * from './index.js'", platform)
    expect(asked).toEqual([])
    expect(text.length).toBeGreaterThan(10_000)
    expect(NODE_ONLY.exec(text)?.[0]).toBeUndefined()
  })

  it('the bundled fetch adapter asks for nothing', async () => {
    const { text, asked } = await bundle("export * from './fetch.js'", platform)
    expect(asked).toEqual([])
    expect(text).toContain('application/problem+json')
    expect(NODE_ONLY.exec(text)?.[0]).toBeUndefined()
  })

  it('a bundled configuration in code asks for nothing, neither files nor YAML', async () => {
    const { text } = await bundle("export { defineConfig } from './config.js'", platform)
    expect(/(?:from|import\(?) ?["'](?:node:[^"']*|yaml)["']/.exec(text)?.[0]).toBeUndefined()
    expect(text).toContain('trustedProxies')
    expect(NODE_ONLY.exec(text)?.[0]).toBeUndefined()
  })

  it('the bundled library carries no Redis with it', async () => {
    const { text } = await bundle("export * from './index.js'", platform)
    expect(/EVALSHA|evalsha|ZADD|redis\.call/.exec(text)?.[0]).toBeUndefined()
  })

  it('the bundled Redis store asks for nothing, whichever client it is given', async () => {
    const { text, asked } = await bundle("export * from './redis.js'", platform)
    expect(asked.filter(isBuiltin)).toEqual([])
    expect(asked).toEqual([])
    expect(text.includes('evalsha')).toBe(true)
    expect(NODE_ONLY.exec(text)?.[0]).toBeUndefined()
  })
})
