/**
 * Every program of the README and the docs compiles as it stands and in use, with a reader's compiler and settings, given
 * the names its page assumes.
 */
import { execFile } from 'node:child_process'
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'

const REPOSITORY = join(import.meta.dirname, '../../..')
/** All that readers see: not decisions on record, nor the report of the API, which is no program. */
const PAGES = [
  ...readdirSync(REPOSITORY).filter(name => name.endsWith('.md')),
  ...readdirSync(join(REPOSITORY, 'packages')).map(name => `packages/${name}/README.md`),
  ...['docs', 'examples', 'deploy'].flatMap(pagesBelow),
].filter(
  page =>
    !/^docs\/(?:adr|reference\/api)\/|\/node_modules\//.test(page) && existsSync(join(REPOSITORY, page)),
)
/** A program in another of these would not be compiled. */
const OTHER_LANGUAGE = /^ *```(?:tsx|jsx|mts|cts|mjs|cjs|typescript|javascript)\b/m
const COMPILER_OPTIONS = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  experimentalDecorators: true,
  target: 'es2023',
  lib: ['es2023', 'dom'],
  types: ['node'],
}
const MODULES = {
  nodenext: { module: 'nodenext', moduleResolution: 'nodenext' },
  bundler: { module: 'esnext', moduleResolution: 'bundler' },
} as const

/** A snippet continues its page: these names come from earlier parts of it, or belong to the reader. */
const TAKEN_FOR_GRANTED: Readonly<Record<string, string>> = {
  createLimiter: `import { createLimiter } from 'headgate'`,
  createClientAddress: `import { createClientAddress } from 'headgate/identify'`,
  slidingWindowLog: `import { slidingWindowLog } from 'headgate'`,
  tier: `import { tier } from 'headgate'`,
  slidingWindowCounter: `import { slidingWindowCounter } from 'headgate'`,
  ban: `import { ban } from 'headgate'`,
  quota: `import { quota } from 'headgate'`,
  together: `import { together } from 'headgate'`,
  tokenBucket: `import { tokenBucket } from 'headgate'`,
  HeadgateEvent: `import type { HeadgateEvent } from 'headgate'`,
  storeContract: `import { storeContract } from 'headgate/testing'`,
  adapterContract: `import { adapterContract } from 'headgate/testing'`,
  concurrency: `import { concurrency } from 'headgate'`,
  memoryStore: `import { memoryStore } from 'headgate'`,
  defineConfig: `import { defineConfig } from 'headgate/config'`,
  loadConfig: `import { loadConfig } from 'headgate/config'`,
  watchConfig: `import { watchConfig } from 'headgate/config'`,
  graphqlCost: `import { graphqlCost } from 'headgate/cost'`,
  jsonRpcCost: `import { jsonRpcCost } from 'headgate/cost'`,
  limitFetch: `import { limitFetch } from 'headgate/outbound'`,
  createStatistics: `import { createStatistics } from 'headgate/metrics'`,
  registerMetrics: `import { registerMetrics } from 'headgate/metrics'`,
  histogramProducer: `import { histogramProducer } from 'headgate/metrics'`,
  traced: `import { traced } from 'headgate/metrics'`,
  withRateLimit: `import { withRateLimit } from 'headgate/next'`,
  limitAction: `import { limitAction } from 'headgate/next'`,
  PeriodicExportingMetricReader: `import { PeriodicExportingMetricReader } from '@opentelemetry/sdk-metrics'`,
  betterAuth: `import { betterAuth } from 'better-auth'`,
  betterAuthStorage: `import { betterAuthStorage } from 'headgate/better-auth'`,
  limitTools: `import { limitTools } from 'headgate/mcp'`,
  server: `declare const server: import('@modelcontextprotocol/sdk/server/mcp.js').McpServer`,
  transport: `declare const transport: import('@modelcontextprotocol/sdk/server/streamableHttp.js').StreamableHTTPServerTransport`,
  exporter: `declare const exporter: import('@opentelemetry/sdk-metrics').PushMetricExporter`,
  statistics: `declare const statistics: import('headgate/metrics').Statistics`,
  runAndCountTokens: `declare function runAndCountTokens(): Promise<number>`,
  myAdapter: `declare const myAdapter: import('headgate/testing').AdapterUnderTest`,
  handler: `declare const handler: () => Promise<Response>`,
  userId: `declare function userId(request: Request): string`,
  RateLimit: `import { RateLimit } from 'headgate/nest'`,
  RateLimitModule: `import { RateLimitModule } from 'headgate/nest'`,
  it: `import { it } from 'vitest'`,
  redisStore: `import { redisStore } from 'headgate/redis'`,
  rateLimit: `import { rateLimit } from 'headgate/express'`,
  express: `import express from 'express'`,
  pino: `import { pino } from 'pino'`,
  createClient: `import { createClient } from 'redis'`,
  Redis: `import { Redis } from 'ioredis'`,
  createServer: `import { createServer } from 'node:http'`,
  initTRPC: `import { initTRPC } from '@trpc/server'`,
  createHTTPServer: `import { createHTTPServer } from '@trpc/server/adapters/standalone'`,
  Controller: `import { Controller } from '@nestjs/common'`,
  Get: `import { Get } from '@nestjs/common'`,
  Post: `import { Post } from '@nestjs/common'`,
  Module: `import { Module } from '@nestjs/common'`,
  limiter: `declare const limiter: import('headgate').RuleLimiter<string, string>`,
  config: `declare const config: import('headgate').Config`,
  client: `declare const client: import('ioredis').Redis`,
  policies: `declare const policies: Record<string, import('headgate').Limit>`,
  myStore: `declare function myStore(options: { clock: import('headgate').Clock }): import('headgate').Store`,
  req: `declare const req: import('node:http').IncomingMessage`,
  response: `declare const response: import('node:http').ServerResponse`,
  metrics: `declare const metrics: { count(type: string): void }`,
  sockets: `declare const sockets: { handleUpgrade(...upgrade: unknown[]): void }`,
  subject: `declare const subject: () => string`,
  accounts: `declare const accounts: { find(key: string): Promise<{ subject: string; tier: string } | null> }`,
  sessionOf: `declare function sessionOf(request: object): Promise<{ subject: string } | undefined>`,
  plans: `declare const plans: Map<import('headgate').SubjectInput, string>`,
  listen: `declare const listen: import('headgate/testing').AdapterUnderTest['serve']`,
  Context: `interface Context { userId: string }`,
  createContext: `declare const createContext: () => Context`,
  checkPassword: `declare function checkPassword(form: FormData): Promise<string>`,
  getStructure: `declare function getStructure(request: Request): Promise<Response>`,
  addStructure: `declare function addStructure(request: Request): Promise<Response>`,
  login: `declare const login: () => Promise<void>`,
  health: `declare const health: () => Promise<void>`,
  url: `declare const url: string`,
  token: `declare const token: string`,
  ca: `declare const ca: string`,
}
/** What a reader does with what a snippet declares: it must fit there, too. */
const IN_USE: Readonly<Record<string, string>> = {
  subject: `import { withRateLimit as useSubject } from 'headgate/next'
declare const useLimiter: import('headgate').Limiter<'api', string>
useSubject(() => new Response(), { limiter: useLimiter, policy: 'api', subject })`,
  proxy: `void (proxy satisfies (request: import('next/server.js').NextRequest) => unknown)`,
  GET: `void (GET satisfies (request: import('next/server.js').NextRequest) => Promise<Response>)`,
  POST: `void (POST satisfies (request: import('next/server.js').NextRequest) => Promise<Response>)`,
  store: `import { createLimiter as useStore } from 'headgate'
useStore({ store, policies: {} })`,
  myStore: `import { createLimiter as useMyStore } from 'headgate'
useMyStore({ store: myStore({ clock: { nowUs: () => 0, unixMs: () => 0 } }), policies: {} })`,
  glideConnection: `import { redisStore as useConnection } from 'headgate/redis'
declare const useGlide: import('@valkey/valkey-glide').GlideClient
useConnection(glideConnection(useGlide))`,
  identify: `import { rateLimit as useIdentify } from 'headgate/express'
useIdentify({ limit: 1, window: '1s', identify })`,
  AppModule: `import { NestFactory as UseModule } from '@nestjs/core'
UseModule.create(AppModule)`,
}
/** Packages that are not installed here, and what readers have added to those that are. */
const ELSEWHERE = `
declare module 'your-framework' {
  interface Call {
    method: string; target: string; route?: string; remoteAddress: string; headers: Record<string, string>; signal: AbortSignal
    answer: { status: number; headers: Record<string, string>; body: string }
  }
}
declare module '@valkey/valkey-glide' {
  interface GlideClient { customCommand(words: string[]): Promise<unknown>; close(): void }
  type GlideClusterClient = GlideClient
}
declare namespace Express {
  interface Request { user: { id: string; organisation: string } }
}
`
/** The app and router that a page has created, by the adapter that a snippet imports. */
const APPS: Readonly<Record<string, string>> = {
  fastify: `declare const app: import('fastify').FastifyInstance`,
  hono: `declare const app: import('hono').Hono`,
  koa: `declare const app: import('koa'); declare const router: import('@koa/router').Router`,
  trpc: `declare const router: import('@trpc/server').AnyTRPCRouter`,
  express: `declare const app: import('express').Express`,
}

/** Shows that a snippet that does not compile is found. */
const WRONG = { page: 'wrong.md', line: 7, code: `limiter.chekc('user:1', { policy: 'api' })\n` }

it.each(Object.keys(MODULES) as (keyof typeof MODULES)[])(
  'every program of the README and the docs, and every example of the sources, compiles in use, with module resolution %s',
  async resolution => {
    const snippets = [...PAGES.flatMap(snippetsOf), ...examples()]
    expect(snippets.length).toBeGreaterThan(50)
    const complaints = await compile([...snippets, WRONG], resolution)
    expect(complaints).toMatch(/wrong-7\.ts.*chekc/)
    expect(complaints.split('\n').filter(line => line !== '' && !line.includes('wrong-7.ts'))).toEqual([])
  },
  120_000,
)

it('every program of a page is shown as ts or js, so that it is compiled', () => {
  const texts = PAGES.map(page => [page, readFileSync(join(REPOSITORY, page), 'utf8')] as const)
  expect(texts.filter(([, text]) => OTHER_LANGUAGE.test(text)).map(([page]) => page)).toEqual([])
  expect(PAGES).toEqual(
    expect.arrayContaining(['README.md', 'packages/server/README.md', 'examples/README.md']),
  )
})

interface Snippet {
  readonly page: string
  readonly line: number
  readonly extension?: string
  readonly code: string
}

function pagesBelow(folder: string): string[] {
  return readdirSync(join(REPOSITORY, folder), { recursive: true })
    .map(name => `${folder}/${name}`)
    .filter(name => name.endsWith('.md'))
}

function snippetsOf(page: string): Snippet[] {
  const text = readFileSync(join(REPOSITORY, page), 'utf8')
  return [...text.matchAll(/^ *```(ts|js)\b.*\n([\s\S]*?)^ *```/gm)].map(
    ({ index, 1: language, 2: code = '' }) => ({
      page,
      line: text.slice(0, index).split('\n').length,
      // Pages show JavaScript only for CommonJS.
      extension: language === 'js' ? 'cts' : 'ts',
      code,
    }),
  )
}

/** The `@example`s of the sources, which are the reference of the API. An adapter's are written for its own framework. */
function examples(): Snippet[] {
  const folder = 'packages/headgate/src'
  const files = readdirSync(join(REPOSITORY, folder), { recursive: true, encoding: 'utf8' })
  return files
    .filter(name => name.endsWith('.ts') && !name.endsWith('.test.ts'))
    .flatMap(name => {
      const text = readFileSync(join(REPOSITORY, folder, name), 'utf8')
      const adapter = /^adapters\/([\w-]+)\.ts$/.exec(name)?.[1] ?? ''
      return [...text.matchAll(/@example\n([\s\S]*?)(?=\n\s*\* @[a-z]|\s*\*\/)/g)].map(
        ({ index, 1: lines = '' }) => {
          const code = lines.replace(/^\s*\* ?/gm, '')
          return {
            page: `${folder}/${name}`,
            line: text.slice(0, index).split('\n').length,
            // A decorator is for something, and a procedure is of something.
            code: [
              adapter !== '' && code.includes('rateLimit(')
                ? `import { rateLimit } from 'headgate/${adapter}'`
                : '',
              uses(code, 't') ? 'const t = initTRPC.context<{ userId: string }>().create()' : '',
              code.startsWith('@') ? `${code}\nclass Example {}` : code,
            ].join('\n'),
          }
        },
      )
    })
}

/** Returns the compiler's errors, each with the snippet's page and line in the file name. */
async function compile(snippets: readonly Snippet[], resolution: keyof typeof MODULES): Promise<string> {
  // Below node_modules, so that the repository's packages are found.
  mkdirSync(join(REPOSITORY, 'packages/headgate/node_modules/.cache'), { recursive: true })
  const folder = mkdtempSync(join(REPOSITORY, 'packages/headgate/node_modules/.cache/snippets-'))
  try {
    const files = snippets.map(({ page, line, extension = 'ts', code }) => {
      const file = `${page.replace(/\.md$/, '').replaceAll('/', '__')}-${line}.${extension}`
      writeFileSync(join(folder, file), `${code}\n${grantedTo(code)}\nexport {}\n`)
      return file
    })
    writeFileSync(join(folder, 'elsewhere.d.ts'), ELSEWHERE)
    const compilerOptions = { ...COMPILER_OPTIONS, ...MODULES[resolution] }
    const project = { compilerOptions, files: [...files, 'elsewhere.d.ts'] }
    writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(project))
    const tsc = join(REPOSITORY, 'node_modules/typescript/bin/tsc')
    await promisify(execFile)(process.execPath, [tsc, '-p', folder])
    return ''
  } catch (error) {
    return (error as { stdout: string }).stdout
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

function grantedTo(code: string): string {
  const adapter = Object.keys(APPS).find(name => code.includes(`headgate/${name}'`)) ?? 'express'
  const used = Object.entries(IN_USE).flatMap(([name, use]) => (declaresForAll(code, name) ? [use] : []))
  const all = [code, ...used].join('\n')
  const granted = Object.entries(TAKEN_FOR_GRANTED)
    .filter(([name]) => uses(all, name) && !declares(code, name))
    .map(([, declaration]) => declaration)
  return [...used, ...granted, ...(declares(code, 'app') ? [] : [APPS[adapter]])].join('\n')
}

function uses(code: string, name: string): boolean {
  return new RegExp(`(?<![.\\w'/-])${name}\\b(?!['/-])`).test(code)
}

/** Whether a name is declared outside any function. */
function declaresForAll(code: string, name: string): boolean {
  return new RegExp(`^(?:export )?(?:const|function|class) ${name}\\b`, 'm').test(code)
}

function declares(code: string, name: string): boolean {
  const declaration = `(?:const|let|function|class|interface) (?:[[{][^\\]}=]*)?\\b${name}\\b`
  return new RegExp(`${declaration}|import [^\\n]*\\b${name}\\b[^\\n]* from`).test(code)
}
