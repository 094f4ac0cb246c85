/** Enforces a table of who may import whom, without exceptions. A new folder needs a row. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { allAlgorithms } from '../src/algorithms/all-algorithms.js'
import { ImportTable, type Row } from './support/import-table.js'
import { importsOf, impuritiesOf, readsClock, sourcesOf, withoutComments } from './support/sources.js'

const LIBRARY = join(import.meta.dirname, '../src')
const SERVER = join(import.meta.dirname, '../../server/src')

/** The library's stages in the order a request passes them. What is not said here is forbidden. */
const STAGES: Readonly<Record<string, Row>> = {
  errors: { holds: 'errors with stable codes, and how text from outside is shown' },
  time: { holds: 'the clock, timers, and long work done in slices' },
  algorithms: {
    holds:
      'each algorithm and all there is to know about it: options, arithmetic, states, wire, words; the specification',
    may: ['algorithms/algorithm', 'errors'],
  },
  'algorithms/algorithm': { holds: 'what an algorithm and a limit are', partOf: 'algorithms' },
  // Whoever imports it bundles every algorithm.
  'algorithms/all-algorithms': { holds: 'the algorithms by their names', may: ['algorithms'] },
  subject: { holds: 'who is asking', may: ['errors'], packages: ['jose'] },
  cost: { holds: 'units a request takes by what its body asks for' },
  check: {
    holds:
      'one check on its way: what is asked, the plan that all checks alike share, and the numbers of the answer',
    may: ['algorithms/algorithm', 'decision', 'errors'],
    types: ['observe', 'policy', 'subject', 'time'],
  },
  decision: {
    holds: 'decisions, headers, problem responses',
    may: ['algorithms', 'errors', 'policy', 'subject'],
    types: ['check'],
  },
  policy: {
    holds: 'which limits apply',
    may: ['algorithms', 'check', 'errors', 'subject'],
    types: ['time'],
  },
  store: {
    holds: 'what a store is, and how one is asked in plain data',
    may: ['algorithms/algorithm', 'check', 'errors', 'time'],
    types: ['observe'],
  },
  'store/memory': {
    holds: 'the embedded store',
    may: ['algorithms/algorithm', 'errors', 'store', 'time'],
    types: ['check'],
  },
  'store/remote': {
    holds: 'everything in front of a store that is reached over a network',
    may: ['algorithms/algorithm', 'check', 'errors', 'observe', 'store/memory', 'subject'],
    types: ['store', 'time'],
  },
  // The arithmetic is the script's: of a limit it knows what its algorithm says of the wire.
  'store/redis': {
    holds: 'sending to Redis, Valkey and KeyDB',
    may: ['algorithms/algorithm', 'errors', 'observe', 'store', 'store/remote', 'subject', 'time'],
    types: ['check'],
    packageTypes: ['ioredis', 'iovalkey', 'redis', '@upstash/redis'],
  },
  observe: {
    holds: 'logger, events, what is counted, and metrics',
    may: ['errors', 'time'],
    types: ['check', 'decision', 'policy', 'store/remote'],
  },
  'observe/opentelemetry': {
    holds: 'the metrics and spans of OpenTelemetry',
    may: ['time', 'errors', 'observe'],
    types: ['decision'],
  },
  // It is handed a store; the only one it knows is the embedded default.
  limiter: {
    holds: 'the front door',
    may: ['check', 'decision', 'errors', 'observe', 'policy', 'store', 'store/memory', 'subject', 'time'],
    types: ['algorithms'],
  },
  // Reads what operators write. Loads files, timers and YAML only on demand.
  config: {
    holds: 'reading policy files and the environment',
    may: ['algorithms', 'algorithms/all-algorithms', 'errors', 'observe', 'policy', 'subject', 'time'],
    types: ['check'],
    packages: ['node:*', 'yaml'],
  },
  adapters: {
    holds: 'one function for every framework',
    may: [
      'adapters/inline-limit',
      'algorithms',
      'decision',
      'errors',
      'observe',
      'policy',
      'store',
      'subject',
      'time',
    ],
    types: ['check', 'limiter'],
    packageTypes: ['*'],
    packages: ['node:*'],
  },
  'adapters/inline-limit': {
    holds: 'a limit in one line, which has nobody else to make its limiter',
    may: ['algorithms', 'errors', 'limiter'],
    types: ['adapters', 'store'],
  },
  'adapters/better-auth': {
    holds: 'better-auth, which brings limits of its own',
    may: ['adapters', 'algorithms', 'decision', 'limiter', 'observe'],
  },
  'adapters/next': {
    holds: 'Next.js',
    may: ['adapters'],
    types: ['adapters/inline-limit'],
    packages: ['next/server.js'],
  },
  'adapters/next-action': {
    holds: 'server actions of Next.js',
    may: ['adapters', 'errors'],
    types: ['decision', 'subject'],
    packages: ['next/headers.js'],
  },
  'adapters/trpc': {
    holds: 'tRPC',
    may: ['adapters'],
    types: ['decision', 'subject'],
    packages: ['@trpc/server'],
  },
  'adapters/nest': {
    holds: 'NestJS',
    may: ['adapters', 'adapters/inline-limit'],
    types: ['store'],
    packages: ['@nestjs/common', '@nestjs/core'],
    packageTypes: ['*'],
  },
  outbound: {
    holds: 'calls to others: waiting for a turn, and how much an upstream can take',
    may: ['adapters', 'algorithms', 'errors', 'policy', 'store', 'time'],
    types: ['check', 'decision', 'limiter', 'subject'],
  },
  testing: {
    holds: 'contract suites and fakes for users',
    may: ['algorithms', 'config', 'errors', 'limiter', 'store', 'store/memory', 'store/remote', 'time'],
    types: ['adapters', 'check'],
    packages: ['node:*'],
  },
}

/** Files the package exports. They may import from any stage. */
const ENTRY_POINTS = entryPoints()

const table = new ImportTable(STAGES, ENTRY_POINTS)

function entryPoints(): ReadonlySet<string> {
  const text = readFileSync(join(import.meta.dirname, '../package.json'), 'utf8')
  const exported = Object.values(JSON.parse(text).exports as Record<string, string | { default: string }>)
  const files = exported.map(target => (typeof target === 'string' ? target : target.default))
  return new Set(files.map(file => file.replace('./dist/', '').replace(/\.js$/, '.ts')))
}

/** Names of algorithms as text, and comparisons of them, which belong to the algorithm. */
function namedAlgorithmsOf(file: string, source: string): string[] {
  const code = withoutComments(source)
  const names = [...allAlgorithms.keys()].filter(name => new RegExp(`['"\`]${name}['"\`]`).test(code))
  return [...names.map(name => `${file} names ${name}`), ...comparedAlgorithmsOf(file, source)]
}

/** Two limits may be compared for having the same algorithm. */
function comparedAlgorithmsOf(file: string, source: string): string[] {
  const comparison =
    /\balgorithm(\.(name|kind|wire\.kind))? [!=]==? (?!undefined|\w+\.algorithm\b)|switch \(\w+\.algorithm|\w+Algorithm [!=]==? |[!=]==? \w+Algorithm\b/
  return comparison.test(withoutComments(source)) ? [`${file} compares an algorithm`] : []
}

const library = sourcesOf(LIBRARY)
const server = sourcesOf(SERVER)

describe('the library', () => {
  it('the library imports what the table allows, and nothing else', () => {
    expect(library.length).toBeGreaterThan(20)
    expect(library.flatMap(({ file, source }) => table.denialsOf(file, source))).toEqual([])
  })

  it('the algorithms have no clocks, timers or promises', () => {
    const algorithms = library.filter(({ file }) => file.startsWith('algorithms/'))
    expect(algorithms.length).toBeGreaterThan(5)
    expect(
      algorithms.flatMap(({ file, source }) => impuritiesOf(source).map(word => `${file}: ${word}`)),
    ).toEqual([])
  })

  it('nobody but an algorithm spells its name or compares it', () => {
    const others = library.filter(({ file }) => !file.startsWith('algorithms/'))
    expect(others.flatMap(({ file, source }) => namedAlgorithmsOf(file, source))).toEqual([])
    const comparisons = server.flatMap(({ file, source }) => comparedAlgorithmsOf(file, source))
    expect(comparisons).toEqual([])
    expect(namedAlgorithmsOf('x.ts', `if (kind === 'token-bucket') return`)).toHaveLength(1)
    expect(namedAlgorithmsOf('x.ts', 'switch (limit.algorithm) {')).toHaveLength(1)
    expect(namedAlgorithmsOf('x.ts', `if (limit.algorithm.name !== other) return`)).toHaveLength(1)
    expect(namedAlgorithmsOf('x.ts', `if (limit.algorithm.kind === 'permits') return`)).toHaveLength(1)
    expect(namedAlgorithmsOf('x.ts', 'if (limit.algorithm === banAlgorithm) return')).toHaveLength(1)
    expect(namedAlgorithmsOf('x.ts', 'algorithm.renew !== undefined // token-bucket')).toEqual([])
  })

  it('the library reads the time in time/clock.ts alone', () => {
    expect(library.filter(({ source }) => readsClock(source)).map(({ file }) => file)).toEqual([
      'time/clock.ts',
    ])
  })

  it('the limiter never knows a shared store', () => {
    const limiter = library.find(({ file }) => file === 'limiter/limiter.ts')
    const specifiers = importsOf(limiter?.source ?? '').map(({ specifier }) => specifier)
    expect(specifiers).not.toEqual([])
    expect(specifiers.filter(specifier => specifier.includes('redis'))).toEqual([])
  })
})

describe('the server', () => {
  /** Finds imports of anything but the library's public entry points. */
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

  it('the server uses the library through its public entry points', () => {
    expect(server.flatMap(({ file, source }) => trespasses(file, source))).toEqual([])
  })

  it('an import of the server that is not a public entry point is found', () => {
    expect(trespasses('a.ts', `import { x } from '../src/limiter/limiter.js'`)).toHaveLength(1)
    expect(trespasses('a.ts', `import { x } from 'headgate/dist/limiter.js'`)).toHaveLength(1)
    expect(trespasses('a.ts', `import { x } from 'headgate'`)).toEqual([])
  })
})

describe('the table is enforced', () => {
  it.each([
    ['algorithms/token-bucket.ts', `import { systemClock } from '../time/clock.js'`],
    ['algorithms/token-bucket.ts', `import type { Store } from '../store/store.js'`],
    ['algorithms/token-bucket.ts', `import { createHash } from 'node:crypto'`],
    ['algorithms/deep/x.ts', `export { memoryStore } from '../../store/memory/memory-store.js'`],
    ['subject/key.ts', `import '../limiter/limiter.js'`],
    ['policy/tiers.ts', `import { allAlgorithms } from '../algorithms/all-algorithms.js'`],
    ['store/redis/redis-store.ts', `import { tokenBucket } from '../../algorithms/token-bucket.js'`],
    [
      'store/redis/redis-store.ts',
      `import { \n  type TokenBucketLimit, \n  tokenBucket, \n } from '../../algorithms/token-bucket.js'`,
    ],
    ['store/redis/redis-store.ts', `import { memoryStore } from '../memory/memory-store.js'`],
    ['store/redis/clients/ioredis.ts', `import { Redis } from 'ioredis'`],
    ['limiter/limiter.ts', `import { redisStore } from '../store/redis/redis-store.js'`],
    ['limiter/limiter.ts', `import type { RedisStore } from '../store/redis/redis-store.js'`],
    ['limiter/limiter.ts', `const { redisStore } = await import('../store/redis/redis-store.js')`],
    ['limiter/limiter.ts', `import { allAlgorithms } from '../algorithms/all-algorithms.js'`],
    ['adapters/express.ts', `import express from 'express'`],
    ['adapters/express.ts', `import express, { type Request } from 'express'`],
    ['adapters/express.ts', `import { createLimiter } from '../limiter/limiter.js'`],
    ['utils/strings.ts', ''],
    ['algorithms/token-bucket.ts', `import { x } from '../elsewhere/x.js'`],
  ])('the table forbids %s to import: %s', (file, source) => {
    expect(table.denialsOf(file, source)).toHaveLength(1)
  })

  it.each([
    ['algorithms/token-bucket.ts', `import { HeadgateError } from '../errors/headgate-error.js'`],
    ['algorithms/token-bucket.ts', `// import { x } from '../time/clock.js'\n/* import y from 'node:fs' */`],
    ['store/redis/redis-store.ts', `import type { Check } from '../../check/check.js'`],
    [
      'store/redis/redis-store.ts',
      `import type { Check } from '../../check/check.js'
import type { Question } from '../ask-store.js'`,
    ],
    ['store/redis/clients/ioredis.ts', `import type { Redis } from 'ioredis'`],
    ['adapters/express.ts', `import type { Request } from 'express'`],
    ['adapters/express.ts', `import type { Limiter } from '../limiter/limiter.js'`],
    ['index.ts', `export { redisStore } from './store/redis/redis-store.js'`],
  ])('the table allows %s to import: %s', (file, source) => {
    expect(table.denialsOf(file, source)).toEqual([])
  })

  it('an algorithm that is not pure is found', () => {
    expect(impuritiesOf('const now = Date.now()')).toEqual(['Date'])
    expect(impuritiesOf('setTimeout(() => Promise.resolve(), performance.now())')).toHaveLength(3)
    expect(impuritiesOf('// a Promise in a comment\nconst updated = candidate')).toEqual([])
    expect(readsClock('const at = performance.now()')).toBe(true)
    expect(readsClock('const at = new Date()')).toBe(true)
    expect(readsClock('const at = clock.nowUs() // not Date.now()')).toBe(false)
  })
})
