import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { type Consumer, installPacked, tool, typescript5 } from './packed.ts'

let consumer: Consumer
beforeAll(async () => {
  consumer = await installPacked()
})
afterAll(() => consumer.remove())

const ENTRY_POINTS = Object.keys(manifest.exports)
  .filter(path => !path.endsWith('.json'))
  .map(path => `headgate${path.slice(1)}`)

// The second check is denied, and wrong options must be errors: types that resolve to `any` would accept them.
const APP = `
import { createLimiter, slidingWindowLog } from 'headgate'
import { loadConfig } from 'headgate/config'
import { rateLimit } from 'headgate/fetch'
import { redisStore } from 'headgate/redis'
import { manualClock } from 'headgate/testing'

export const mistakes = [
  // @ts-expect-error
  () => slidingWindowLog({ limit: '1', window: '1m' }),
  // @ts-expect-error
  () => redisStore(1),
  // @ts-expect-error
  () => loadConfig(1),
]
const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 1, window: '1m' }) } })
export const limited = [rateLimit({ limiter, policy: 'api', subject: () => 'user:1' }), manualClock]
async function main() {
  const first = await limiter.check('user:42', { policy: 'api' })
  const second = await limiter.check('user:42', { policy: 'api' })
  console.log(first.allowed + ' ' + second.allowed)
}
void main()
`

it('Node gets one copy of every entry point, and other tools a CommonJS one of those that are for users', () => {
  const { './internal': internal, ...forUsers } = manifest.exports
  expect(internal).toEqual({ default: './dist/internal.js' })
  const conditions = Object.values(forUsers).filter(target => typeof target === 'object')
  for (const target of conditions) {
    const file = target.default
    expect(target).toEqual({ 'module-sync': file, require: file.replace('/dist/', '/cjs/'), default: file })
  }
})

it('every entry point gives require what it gives import', async () => {
  await consumer.write(
    'require.cjs',
    `for (const entry of ${JSON.stringify(ENTRY_POINTS)}) {
       const required = require(entry)
       import(entry).then(imported => {
         const same = Object.keys(imported).every(name => imported[name] === required[name])
         console.log(entry, Object.keys(required).length > 0 && same)
       })
     }`,
  )
  const said = await consumer.run('require.cjs', [], { NODE_NO_WARNINGS: '1' })
  expect(said.trim().split('\n').sort()).toEqual(ENTRY_POINTS.map(entry => `${entry} true`).sort())
})

const COMPILERS = { current: tool('typescript/bin/tsc'), old: typescript5() }
const SETTINGS = [
  ['current', 'commonjs', undefined, 'commonjs'],
  ['current', 'node16', undefined, 'commonjs'],
  ['current', 'nodenext', undefined, 'commonjs'],
  ['current', 'nodenext', undefined, 'module'],
  ['current', 'esnext', 'bundler', 'module'],
  ['old', 'commonjs', 'node10', 'commonjs'],
  ['old', 'node16', undefined, 'commonjs'],
] as const

describe('TypeScript', () => {
  it.each(SETTINGS)(
    'the %s compiler takes module %s and moduleResolution %s in a package of type %s, and what it writes runs',
    async (compiler, module, moduleResolution, type) => {
      await consumer.write('package.json', JSON.stringify({ private: true, type }))
      await consumer.write('app.ts', APP)
      const compilerOptions = {
        module,
        ...(moduleResolution && { moduleResolution }),
        target: 'es2022',
        outDir: 'out',
        strict: true,
        skipLibCheck: false, // as in a new project: what the package declares has to compile, too
        types: ['node'],
      }
      await consumer.write('tsconfig.json', JSON.stringify({ compilerOptions, files: ['app.ts'] }))
      expect(await consumer.run(COMPILERS[compiler], ['-p', '.'])).toBe('')
      expect(await consumer.run('out/app.js', [])).toContain('true false')
    },
  )
})

it('who identifies callers without tokens needs no types of jose', async () => {
  const types = await readFile(join(consumer.folder, 'node_modules/headgate/cjs/identify.d.ts'), 'utf8')
  expect(types).toContain('jwt')
  expect(types).not.toMatch(/from ["']jose["']/)
})

/** A store that counts in a Map, written with only what the package exports, and a limiter with names of its own. */
const CUSTOM_STORE = `
import { createLimiter, slidingWindowLog } from 'headgate'
import type { Check, ControlStore, FailureMode, PendingCheck, Refund, Store } from 'headgate'
import { defineConfig } from 'headgate/config'
import { rateLimit } from 'headgate/fetch'

class CountingStore implements Store {
  readonly source = 'memory'
  readonly onStoreFailure: FailureMode = 'open'
  readonly control?: ControlStore
  private readonly used = new Map<string, number>()

  decide(check: PendingCheck): void {
    const checks = check.plan.limits.map((_, index) => check.checkOf(index))
    const fits = checks.every(one => this.left(one) >= one.cost)
    check.charged = fits ? 0 : -1
    for (const [index, one] of checks.entries()) {
      if (fits && !check.isPeek) this.used.set(one.subject, (this.used.get(one.subject) ?? 0) + one.cost)
      check.set(index, fits ? 0 : 1_000_000, this.left(one), 1_000_000, 1)
    }
    check.settle(this.source)
  }
  refund(refunds: readonly Refund[]): readonly number[] {
    return refunds.map(() => 0)
  }
  reset(checks: readonly Check[]): void {
    for (const check of checks) this.used.delete(check.subject)
  }
  close(): void {}

  private left({ subject, limit }: Check): number {
    return limit.limit - (this.used.get(subject) ?? 0)
  }
}

const api = slidingWindowLog({ limit: 1, window: '1m' })
const limiter = createLimiter({ store: new CountingStore(), policies: { api } })
const ruled = createLimiter({ config: defineConfig({ policies: { api } }) })
export const mistakes = [
  // @ts-expect-error
  () => ruled.check('user:1', { policy: 'nope' }),
  // @ts-expect-error
  () => ruled.request({ subject: 'user:1', tier: 'prof' }),
  // @ts-expect-error
  () => ruled.inspect('user:1', { tier: 'prof' }),
  // @ts-expect-error
  () => rateLimit({ limiter: ruled, subject: () => 'user:1', tier: () => 'prof' }),
]
async function main() {
  const first = await limiter.check('user:42', { policy: 'api' })
  const second = await limiter.check('user:42', { policy: 'api' })
  console.log(first.allowed + ' ' + second.allowed + ' ' + (await ruled.request({ subject: 'user:1', tier: 'pro' })).tier)
  await ruled.close()
}
void main()
`

it('the package exports what a store of your own is written with, and the compiler checks the names of a limiter', async () => {
  await consumer.write('package.json', JSON.stringify({ private: true, type: 'module' }))
  await consumer.write('store.ts', CUSTOM_STORE)
  const compilerOptions = {
    module: 'nodenext',
    target: 'es2022',
    outDir: 'out',
    strict: true,
    types: ['node'],
  }
  await consumer.write('tsconfig.json', JSON.stringify({ compilerOptions, files: ['store.ts'] }))
  expect(await consumer.run(COMPILERS.current, ['-p', '.'])).toBe('')
  expect(await consumer.run('out/store.js', [])).toContain('true false pro')
})

// A text this long is parsed in a thread, whose file has to be found.
const LIMIT = { algorithm: 'sliding-window-log', limit: 1, window: '1m' }
const LONG_POLICY_FILE = JSON.stringify({ policies: { api: LIMIT } }) + ' '.repeat(5_000)

describe('Jest', () => {
  const jest = tool('jest/bin/jest.js')
  const test = (imports: string): string => `${imports}
    test('a limit holds', async () => {
      const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 1, window: '1m' }) } })
      const checks = [await limiter.check('user:42', { policy: 'api' }), await limiter.check('user:42', { policy: 'api' })]
      expect(checks.map(({ allowed }) => allowed)).toEqual([true, false])
      expect(typeof rateLimit).toBe('function')
      expect((await loadConfig('headgate.json')).policies).toHaveProperty('api')
    })`

  beforeAll(() => consumer.write('headgate.json', LONG_POLICY_FILE))

  it('Jest runs a test that requires the library, with nothing set', async () => {
    await consumer.write('package.json', JSON.stringify({ private: true }))
    const imports = `const { createLimiter, slidingWindowLog } = require('headgate')
      const { loadConfig } = require('headgate/config')
      const { rateLimit } = require('headgate/express')`
    await consumer.write('required.test.js', test(imports))
    expect(await consumer.run(jest, ['required.test.js'])).toContain('1 passed')
  })

  it('Jest runs a test that imports the library, as a module', async () => {
    await consumer.write('package.json', JSON.stringify({ private: true, type: 'module' }))
    const imports = `import { createLimiter, slidingWindowLog } from 'headgate'
      import { loadConfig } from 'headgate/config'
      import { rateLimit } from 'headgate/express'`
    await consumer.write('imported.test.js', test(imports))
    const env = { NODE_OPTIONS: '--experimental-vm-modules' }
    expect(await consumer.run(jest, ['imported.test.js'], env)).toContain('1 passed')
  })
})
