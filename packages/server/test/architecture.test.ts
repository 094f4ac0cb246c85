/** Enforces a table of who may import whom in the server, without exceptions. A new folder needs a row. */
import { join } from 'node:path'
import * as undici from 'undici'
import innerPool from 'undici/lib/dispatcher/pool.js'
import { describe, expect, it } from 'vitest'
import { ImportTable, type Row } from '../../headgate/test/support/import-table.js'
import { importsOf, sourcesOf } from '../../headgate/test/support/sources.js'
import manifest from '../package.json' with { type: 'json' }

const HEADGATE = [
  'headgate',
  'headgate/adapter',
  'headgate/config',
  'headgate/identify',
  'headgate/internal',
  'headgate/metrics',
  'headgate/node-http',
  'headgate/outbound',
  'headgate/redis',
]

/** From what knows least to what starts it all. What is not said here is forbidden. */
const FOLDERS: Readonly<Record<string, Row>> = {
  log: { holds: 'lines for people and machines, and how many are too many' },
  http: { holds: 'servers, bounds and answers of HTTP' },
  redis: { holds: 'connecting to Redis by a URL', packages: ['@redis/client'] },
  gateway: {
    holds: 'the reverse proxy: a request is admitted, then forwarded',
    may: ['http', 'log'],
    packages: ['undici', 'undici/lib/dispatcher/pool.js'],
  },
  admin: { holds: 'the admin port: endpoints, tokens, bodies, probes', may: ['http', 'log'] },
  'decision-api': { holds: 'decisions over HTTP', may: ['admin', 'http', 'log'], types: ['redis'] },
  'forward-auth': {
    holds: 'decisions for proxies that ask before they forward',
    may: ['admin', 'gateway', 'http'],
    types: ['log'],
  },
  envoy: {
    holds: "Envoy's rate limit service",
    may: ['admin', 'http', 'log'],
    packages: ['@grpc/proto-loader', 'yaml'],
  },
  simulate: { holds: 'logs replayed against policy files' },
  metrics: {
    holds: 'Prometheus, how upstreams answer, and how the process is doing',
    may: ['admin', 'gateway'],
    types: ['http'],
  },
  observe: {
    holds: 'stats, alerts and files on trial, for operators',
    may: ['admin', 'http', 'metrics', 'simulate'],
    types: ['log'],
  },
  operators: {
    holds: 'what operators do, over HTTP or on Redis',
    may: ['admin', 'http'],
    types: ['observe', 'redis'],
  },
  dashboard: { holds: 'the page', may: ['admin'], types: ['http'] },
  service: {
    holds: 'the ports of one process, opened and closed together',
    may: [
      'admin',
      'dashboard',
      'decision-api',
      'envoy',
      'forward-auth',
      'gateway',
      'http',
      'metrics',
      'observe',
      'operators',
    ],
    types: ['log', 'redis'],
  },
  workers: {
    holds: 'several processes behind the same ports',
    may: ['envoy', 'metrics', 'observe'],
    types: ['log', 'service'],
  },
  cli: {
    holds: 'commands, flags, and what people read',
    may: [
      'admin',
      'decision-api',
      'envoy',
      'gateway',
      'http',
      'log',
      'observe',
      'operators',
      'redis',
      'service',
      'simulate',
      'workers',
    ],
    packages: ['commander'],
  },
}

const everywhere = (row: Row): Row => ({ ...row, packages: [...(row.packages ?? []), 'node:*', ...HEADGATE] })
const rows = Object.fromEntries(Object.entries(FOLDERS).map(([folder, row]) => [folder, everywhere(row)]))
const table = new ImportTable(rows, new Set(['main.ts']))
const sources = sourcesOf(join(import.meta.dirname, '../src'))

describe('the server', () => {
  it('the server imports what its table allows, and nothing else', () => {
    expect(sources.length).toBeGreaterThan(100)
    expect(sources.flatMap(({ file, source }) => table.denialsOf(file, source))).toEqual([])
  })

  it('the table of the server allows nothing that no file needs', () => {
    expect(table.unusedOf(sources)).toEqual([])
  })

  it('the table of the server has no circle: each folder imports those above it', () => {
    const names = Object.keys(FOLDERS)
    const circles = Object.entries(FOLDERS).flatMap(([folder, { may = [], types = [] }]) =>
      [...may, ...types].filter(other => names.indexOf(other) > names.indexOf(folder)),
    )
    expect(circles).toEqual([])
  })

  it('a package of which an inner file is imported is held to its patches: a minor release may move the file', () => {
    const specifiers = sources.flatMap(({ source }) => importsOf(source).map(({ specifier }) => specifier))
    const inner = Object.entries(manifest.dependencies).filter(
      ([name]) => name !== 'headgate' && specifiers.some(specifier => specifier.startsWith(`${name}/`)),
    )
    expect(inner).toEqual([['undici', expect.stringMatching(/^~\d/)]])
    expect(innerPool).toBe(undici.Pool)
  })

  it.each([
    ['gateway/admit.ts', `import { startService } from '../service/service.js'`],
    ['http/listen.ts', `import type { WriteLine } from '../log/write-line.js'`],
    ['gateway/forward.ts', `import { Command } from 'commander'`],
    ['elsewhere/x.ts', ''],
  ])('the table of the server forbids %s to import: %s', (file, source) => {
    expect(table.denialsOf(file, source)).toHaveLength(1)
  })
})
