/** Every regular expression of the product takes linear time, so that no text from outside can slow one down. */
import { fileURLToPath } from 'node:url'
import { transform } from 'esbuild'
import { checkSync } from 'recheck'
import { afterEach, describe, expect, it, vi } from 'vitest'
import { parseAst } from 'vitest/node'
import { slidingWindowLog } from '../src/algorithms/sliding-window-log.js'
import { defineConfig } from '../src/config.js'
import { createLimiter } from '../src/limiter/limiter.js'
import { sourcesOf } from './support/sources.ts'

interface Expression {
  readonly pattern: string
  readonly flags: string
}

const PACKAGES = ['headgate', 'server'] as const

/** Sources that build one from our own text, never from a client's. */
const FROM_OUR_OWN_WORDS = [
  'headgate/config/file/path-pattern.ts',
  'headgate/store/redis/straight-line.ts',
  'headgate/subject/percent-decoding.ts',
  'server/observe/redis-stats.ts',
  'server/redis/examine.ts',
]

async function syntaxOf(source: string): Promise<unknown[]> {
  const { code } = await transform(source, { loader: 'ts' })
  const nodes: unknown[] = []
  JSON.stringify(parseAst(code), (_key, value) => {
    if (value !== null && typeof value === 'object' && 'type' in value) nodes.push(value)
    return typeof value === 'bigint' ? String(value) : value
  })
  return nodes
}

const isExpression = (node: unknown): node is { regex: Expression } =>
  (node as { regex?: unknown }).regex != null

const isMade = (node: unknown): boolean => {
  const { type, callee } = node as { type: string; callee?: { name?: string } }
  return (type === 'NewExpression' || type === 'CallExpression') && callee?.name === 'RegExp'
}

async function expressions() {
  const written = new Map<string, Expression>()
  const builders = new Set<string>()
  for (const name of PACKAGES) {
    for (const { file, source } of sourcesOf(fileURLToPath(new URL(`../../${name}/src`, import.meta.url)))) {
      for (const node of await syntaxOf(source)) {
        if (isExpression(node)) written.set(`/${node.regex.pattern}/${node.regex.flags}`, node.regex)
        if (isMade(node)) builders.add(`${name}/${file}`)
      }
    }
  }
  return { written: [...written.values()], builders: [...builders] }
}

/** Returns those that modules of the library build as they load. */
async function builtOnLoad(): Promise<Expression[]> {
  const built: Expression[] = []
  const Original = RegExp
  vi.stubGlobal(
    'RegExp',
    class extends Original {
      constructor(pattern: string | RegExp, flags?: string) {
        super(pattern, flags)
        built.push({ pattern: this.source, flags: this.flags })
      }
    },
  )
  vi.resetModules()
  await import('../src/config/file/path-pattern.js')
  await import('../src/subject/percent-decoding.js')
  return built
}

/** Without a time limit, which would depend on the machine. */
const isSlow = ({ pattern, flags }: Expression): boolean =>
  checkSync(pattern, flags, { timeout: null }).status !== 'safe'

afterEach(() => void vi.unstubAllGlobals())

describe('regular expressions', () => {
  it('every regular expression of the sources takes linear time', async () => {
    const { written } = await expressions()
    expect(written.length).toBeGreaterThan(80)
    expect(written.filter(isSlow)).toEqual([])
  }, 300_000)

  it('a regular expression is put together of our own words alone', async () => {
    expect((await expressions()).builders.sort()).toEqual(FROM_OUR_OWN_WORDS)
  })

  it('a regular expression that a module puts together as it loads takes linear time', async () => {
    const built = await builtOnLoad()
    expect(built.length).toBeGreaterThanOrEqual(4)
    expect(built.filter(isSlow)).toEqual([])
  })

  it('a regular expression with superlinear time is found', () => {
    expect(isSlow({ pattern: '^(a+)+$', flags: '' })).toBe(true)
  })
})

it('a path of 50,000 characters is decided by every kind of pattern', async () => {
  const api = slidingWindowLog({ limit: 1, window: '1m' })
  const paths = ['/aaaa', '/a/a/a/:d', '/a/:b/*', '/:a/:b/:c', '/*'] as const
  const limiter = createLimiter({
    config: defineConfig({
      policies: { api },
      rules: paths.map(path => ({ match: { path }, policy: 'api' as const })),
    }),
  })
  const long = [
    'a'.repeat(50_000),
    '/a'.repeat(25_000),
    '/'.repeat(50_000),
    '%2e'.repeat(16_000),
    'a;'.repeat(25_000),
  ]
  for (const path of long) {
    const ask = { method: 'GET', path: `/${path}`, subject: 'user:1' } as const
    expect(await limiter.request(ask)).toHaveProperty('allowed')
  }
  await limiter.close()
})
