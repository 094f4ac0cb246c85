/** Who may import whom, as a table. A new folder needs a row; a new exception needs a reason. */
import { readFileSync } from 'node:fs'
import { dirname, join, sep } from 'node:path'
import { describe, expect, it } from 'vitest'
import { importsOf, impuritiesOf, readsClock, sourcesOf } from './support/sources.js'

const LIBRARY = join(import.meta.dirname, '../src')
const SERVER = join(import.meta.dirname, '../../server/src')
const MAX_LINES = 400

interface Row {
  /** Stages whose values and types may be imported. A stage may always import itself. */
  readonly may?: readonly string[]
  /** Stages of which only types may be imported. */
  readonly types?: readonly string[]
  /** Packages whose types may be used; `*` is any. */
  readonly packageTypes?: readonly string[]
  /** Packages that may be used at run time. */
  readonly packages?: readonly string[]
}

/** The library's stages in the order a request passes them. What is not said here is forbidden. */
const STAGES: Readonly<Record<string, Row>> = {
  errors: {},
  clock: {},
  engine: { may: ['errors'] },
  subject: { may: ['errors'] },
  policy: { may: ['errors'], types: ['engine', 'subject'] },
  store: { may: ['errors'], types: ['clock', 'engine'] },
  'store/memory': { may: ['errors', 'clock', 'engine', 'store'] },
  'store/guard': {
    may: ['errors', 'clock', 'engine', 'store', 'store/memory'],
    types: ['policy', 'observe'],
  },
  // Its arithmetic is the script's: of the engine it knows only what things are called.
  'store/redis': {
    may: ['errors', 'clock', 'store', 'store/guard', 'subject'],
    types: ['engine', 'observe'],
    packageTypes: ['ioredis', 'iovalkey', 'redis', '@upstash/redis'],
  },
  decision: { may: ['errors', 'engine', 'policy'], types: ['clock', 'store'] },
  observe: { may: ['errors', 'clock'], types: ['decision', 'engine', 'policy', 'store', 'limiter'] },
  // What may be asked of a limiter, waiting for the decision, and giving it back.
  'late-decision': { may: ['decision', 'store'], types: ['engine', 'policy'] },
  'plain-policy': { may: ['decision'], types: ['engine', 'policy', 'store', 'subject'] },
  ask: { may: ['errors'], types: ['store/guard'] },
  refunds: { may: ['decision', 'errors'], types: ['store'] },
  // It is handed a store; the only one it knows is the embedded default.
  limiter: {
    may: [
      'ask',
      'clock',
      'decision',
      'errors',
      'late-decision',
      'observe',
      'plain-policy',
      'policy',
      'refunds',
      'store',
      'store/guard',
      'store/memory',
      'subject',
    ],
    types: ['engine'],
  },
  gate: {
    may: [
      'ask',
      'clock',
      'decision',
      'errors',
      'late-decision',
      'policy',
      'refunds',
      'store',
      'store/memory',
      'subject',
    ],
    types: ['engine', 'limiter'],
  },
  // Reads what operators write. Without files, timers and YAML until one of them is asked for.
  config: {
    may: ['clock', 'errors', 'policy', 'subject'],
    types: ['engine'],
    packages: ['node:*', 'yaml'],
  },
  adapters: {
    may: ['decision', 'errors', 'policy', 'subject'],
    types: ['ask', 'clock', 'engine', 'gate', 'limiter', 'observe', 'store'],
    packageTypes: ['*'],
    packages: ['node:*'],
  },
  testing: {
    may: [
      'clock',
      'decision',
      'engine',
      'errors',
      'limiter',
      'policy',
      'store',
      'store/guard',
      'store/memory',
      'subject',
    ],
  },
}

/** Files the package exports: they name what others may use and may reach any stage. */
const ENTRY_POINTS = entryPoints()

const EXCEPTIONS: readonly { from: string; to: string; because: string }[] = [
  { from: 'limiter.ts', to: 'engine/single.ts', because: 'the shape of a question, not arithmetic' },
  { from: 'plain-policy.ts', to: 'engine/admission.ts', because: 'the shape of an answer, not arithmetic' },
  { from: 'late-decision.ts', to: 'engine/keep-shape.ts', because: 'for the compiler, not arithmetic' },
  { from: 'policy/resolve.ts', to: 'engine/single.ts', because: 'the shape of a question, not arithmetic' },
  {
    from: 'store/redis/encode.ts',
    to: 'engine/single.ts',
    because: 'the shape of a question, not arithmetic',
  },
  {
    from: 'store/redis/decode.ts',
    to: 'engine/single.ts',
    because: 'the shape of an answer, not arithmetic',
  },
  {
    from: 'policy/leases.ts',
    to: 'engine/lease.ts',
    because: 'what a lease may be is for the engine to say',
  },
  { from: 'store/redis/decode.ts', to: 'engine/limit.ts', because: 'NEVER is a name, not arithmetic' },
  {
    from: 'store/redis/share.ts',
    to: 'engine/exact-fraction.ts',
    because: 'a region’s share is a number of its limit, not a decision',
  },
]

/** The row a file belongs to: the longest that is its folder or its name. */
function stageOf(file: string): string | undefined {
  const path = file.replace(/\.ts$/, '')
  return Object.keys(STAGES)
    .filter(stage => path === stage || path.startsWith(`${stage}/`))
    .toSorted((one, other) => other.length - one.length)[0]
}

/** What a file of the library does that the table does not allow. */
function violationsOf(file: string, source: string): string[] {
  if (ENTRY_POINTS.has(file)) return []
  const stage = stageOf(file)
  if (stage === undefined) return [`${file} is in no stage: give its folder a row in the table`]
  return importsOf(source).flatMap(({ specifier, typeOnly }) => {
    const complaint = `${file} imports ${typeOnly ? 'types of ' : ''}${specifier}`
    if (!specifier.startsWith('.')) return mayUsePackage(stage, specifier, typeOnly) ? [] : [complaint]
    const target = join(dirname(file), specifier).split(sep).join('/').replace(/\.js$/, '.ts')
    if (EXCEPTIONS.some(({ from, to }) => from === file && to === target)) return []
    return mayUseStage(stage, stageOf(target), typeOnly) ? [] : [complaint]
  })
}

function mayUseStage(stage: string, target: string | undefined, typeOnly: boolean): boolean {
  const row = STAGES[stage] as Row
  if (target === undefined) return false
  return target === stage || row.may?.includes(target) || (typeOnly && row.types?.includes(target)) || false
}

function mayUsePackage(stage: string, specifier: string, typeOnly: boolean): boolean {
  const row = STAGES[stage] as Row
  const names = (list: readonly string[] = []) =>
    list.some(
      name => name === '*' || name === specifier || (name === 'node:*' && specifier.startsWith('node:')),
    )
  return names(row.packages) || (typeOnly && names(row.packageTypes))
}

function entryPoints(): ReadonlySet<string> {
  const text = readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')
  const exported = Object.values(JSON.parse(text).exports as Record<string, string | { default: string }>)
  const files = exported.map(target => (typeof target === 'string' ? target : target.default))
  return new Set(files.map(file => file.replace('./dist/', '').replace(/\.js$/, '.ts')))
}

const library = sourcesOf(LIBRARY)
const server = sourcesOf(SERVER)

describe('the library', () => {
  it('imports what the table allows, and nothing else', () => {
    expect(library.length).toBeGreaterThan(20)
    expect(library.flatMap(({ file, source }) => violationsOf(file, source))).toEqual([])
  })

  it('has an engine without clocks, timers or promises', () => {
    const engine = library.filter(({ file }) => file.startsWith('engine/'))
    expect(engine.length).toBeGreaterThan(5)
    expect(
      engine.flatMap(({ file, source }) => impuritiesOf(source).map(word => `${file}: ${word}`)),
    ).toEqual([])
  })

  it('reads the time in clock.ts alone', () => {
    expect(library.filter(({ source }) => readsClock(source)).map(({ file }) => file)).toEqual(['clock.ts'])
  })

  it('never lets the limiter know a shared store', () => {
    const limiter = library.find(({ file }) => file === 'limiter.ts')
    const specifiers = importsOf(limiter?.source ?? '').map(({ specifier }) => specifier)
    expect(specifiers).not.toEqual([])
    expect(specifiers.filter(specifier => specifier.includes('redis'))).toEqual([])
  })

  it('gives every exception a file that still needs it', () => {
    for (const { from, to, because } of EXCEPTIONS) {
      const source = library.find(({ file }) => file === from)?.source ?? ''
      const targets = importsOf(source).map(({ specifier }) =>
        join(dirname(from), specifier).replace(/\.js$/, '.ts'),
      )
      expect(targets, `${from}: ${because}`).toContain(to)
    }
  })
})

describe('the server', () => {
  /** Only what the library's package offers; never a path into its sources or its build. */
  function trespasses(file: string, source: string): string[] {
    const offered = new Set(
      Object.keys(JSON.parse(readFileSync(join(LIBRARY, '../package.json'), 'utf8')).exports).map(path =>
        path.replace(/^\./, 'headgate'),
      ),
    )
    return importsOf(source)
      .map(({ specifier }) => specifier)
      .filter(specifier => {
        if (specifier === 'headgate' || specifier.startsWith('headgate/')) return !offered.has(specifier)
        return specifier.startsWith('.') && join(dirname(file), specifier).startsWith('..')
      })
      .map(specifier => `${file} imports ${specifier}`)
  }

  it('uses the library through its public entry points', () => {
    expect(server.flatMap(({ file, source }) => trespasses(file, source))).toEqual([])
  })

  it('is told when it does not', () => {
    expect(trespasses('a.ts', `import { x } from '../../headgate/src/limiter.js'`)).toHaveLength(1)
    expect(trespasses('a.ts', `import { x } from 'headgate/dist/limiter.js'`)).toHaveLength(1)
    expect(trespasses('a.ts', `import { x } from 'headgate'`)).toEqual([])
  })
})

describe('files', () => {
  const all = [...library, ...server]

  it(`are at most ${MAX_LINES} lines long`, () => {
    const written = all.filter(({ file }) => !file.endsWith('.gen.ts'))
    expect(
      written.filter(({ source }) => source.split('\n').length > MAX_LINES + 1).map(({ file }) => file),
    ).toEqual([])
  })

  it('are named after what they hold: no utils, no types, no index but an entry point', () => {
    const vague = /(^|\/)(utils?|types?|helpers?|common|managers?|misc|index)(\/|\.ts$)/
    const found = all.map(({ file }) => file).filter(file => vague.test(file) && !ENTRY_POINTS.has(file))
    expect(found).toEqual([])
  })
})

describe('the table is enforced', () => {
  it.each([
    ['engine/decide.ts', `import { systemClock } from '../clock.js'`],
    ['engine/decide.ts', `import type { Store } from '../store/store.js'`],
    ['engine/decide.ts', `import { createHash } from 'node:crypto'`],
    ['engine/deep/x.ts', `export { memoryStore } from '../../store/memory/memory-store.js'`],
    ['subject/key.ts', `import '../limiter.js'`],
    ['policy/limits.ts', `import { algorithmOf } from '../engine/algorithms.js'`],
    ['store/redis/redis-store.ts', `import { decide } from '../../engine/decide.js'`],
    ['store/redis/redis-store.ts', `import {\n  type Check,\n  NEVER,\n} from '../../engine/limit.js'`],
    ['store/redis/redis-store.ts', `import { memoryStore } from '../memory/memory-store.js'`],
    ['store/redis/clients/ioredis.ts', `import { Redis } from 'ioredis'`],
    ['limiter.ts', `import { redisStore } from './store/redis/redis-store.js'`],
    ['limiter.ts', `import type { RedisStore } from './store/redis/redis-store.js'`],
    ['limiter.ts', `const { redisStore } = await import('./store/redis/redis-store.js')`],
    ['limiter.ts', `import { algorithmOf } from './engine/algorithms.js'`],
    ['adapters/express.ts', `import express from 'express'`],
    ['adapters/express.ts', `import express, { type Request } from 'express'`],
    ['adapters/express.ts', `import { createLimiter } from '../limiter.js'`],
    ['utils/strings.ts', ''],
    ['engine/decide.ts', `import { x } from '../elsewhere/x.js'`],
  ])('%s may not: %s', (file, source) => {
    expect(violationsOf(file, source)).toHaveLength(1)
  })

  it.each([
    ['engine/decide.ts', `import { HeadgateError } from '../errors.js'`],
    ['engine/decide.ts', `// import { x } from '../clock.js'\n/* import y from 'node:fs' */`],
    ['store/redis/redis-store.ts', `import type { Check } from '../../engine/question.js'`],
    ['store/redis/redis-store.ts', `import { type Check, type Question } from '../../engine/question.js'`],
    ['store/redis/clients/ioredis.ts', `import type { Redis } from 'ioredis'`],
    ['adapters/express.ts', `import type { Request } from 'express'`],
    ['adapters/express.ts', `import type { Limiter } from '../limiter.js'`],
    ['index.ts', `export { redisStore } from './store/redis/redis-store.js'`],
  ])('%s may: %s', (file, source) => {
    expect(violationsOf(file, source)).toEqual([])
  })

  it('and so is purity', () => {
    expect(impuritiesOf('const now = Date.now()')).toEqual(['Date'])
    expect(impuritiesOf('setTimeout(() => Promise.resolve(), performance.now())')).toHaveLength(3)
    expect(impuritiesOf('// a Promise in a comment\nconst updated = candidate')).toEqual([])
    expect(readsClock('const at = performance.now()')).toBe(true)
    expect(readsClock('const at = new Date()')).toBe(true)
    expect(readsClock('const at = clock.nowUs() // not Date.now()')).toBe(false)
  })
})
