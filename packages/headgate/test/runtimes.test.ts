import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { type RedisProcess, startRedis } from './support/redis-process.ts'
import { type RestFront, startRestFront } from './support/rest-front.ts'

const SOURCE = fileURLToPath(new URL('../src/', import.meta.url))
const execute = promisify(execFile)
let folder: string

let redis: RedisProcess
let front: RestFront

// Code at module scope must set no timer, send nothing and use no random number, because workerd forbids all of
// them.
const APP = `
import { Redis } from '@upstash/redis/cloudflare'
import { createLimiter, memoryStore, slidingWindowLog } from './index.ts'
import { rateLimit } from './fetch.ts'
import { redisStore } from './redis.ts'

const stores = [memoryStore(), redisStore(new Redis({ url: URL, token: TOKEN }), { prefix: PREFIX, deadlineMs: 5_000 })]
const sources = []
const limited = stores.map(store => {
  const limiter = createLimiter({ store, policies: { api: slidingWindowLog({ limit: 2, window: '1m' }) } })
  const subject = request => ({ type: 'apikey', id: request.headers.get('x-api-key') })
  const onDecision = ({ source }) => sources.push(source)
  return rateLimit({ limiter, policy: 'api', subject, onDecision })(() => new Response('hello'))
})

export default {
  async test(_controller, env, context) {
    for (const handle of limited) {
      const found = []
      sources.length = 0
      for (const key of ['a', 'a', 'a', 'b']) {
        const request = new Request('http://localhost/', { headers: { 'x-api-key': key } })
        const response = await handle(request, env, context)
        found.push(response.status + ' ' + response.headers.get('x-ratelimit-remaining'))
      }
      console.log(found.join(', ') + ' ' + sources.join())
    }
  },
}
`
const WORKERD_CONFIG = `
using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  services = [
    (name = "main", worker = .app),
    (name = "internet", network = (allow = ["private", "public"])),
  ],
);
const app :Workerd.Worker = (
  modules = [(name = "app.mjs", esModule = embed "app.mjs")],
  compatibilityDate = "2026-01-01",
);
`

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-runtimes-'))
  redis = await startRedis()
  front = await startRestFront(redis.port)
  await writeFile(join(folder, 'main.mjs'), `import app from './app.mjs'\nawait app.test()\n`)
  await writeFile(join(folder, 'config.capnp'), WORKERD_CONFIG)
})
afterAll(async () => {
  await front.close()
  await redis.stop()
  await rm(folder, { recursive: true, force: true })
})

it.each([
  ['workerd', 'bin/workerd', 'bin/workerd', ['test', 'config.capnp']],
  ['bun', 'bin/bun', 'bin/bun.exe', ['main.mjs']],
  ['deno', 'deno', 'deno', ['run', '--allow-net=127.0.0.1', 'main.mjs']],
])(
  '%s limits what was made before the first request, in memory and on Redis',
  async (runtime, path, placed, args) => {
    const define = { URL: front.url, TOKEN: front.token, PREFIX: runtime }
    await build({
      stdin: { contents: APP, resolveDir: SOURCE, loader: 'ts' },
      define: Object.fromEntries(
        Object.entries(define).map(([name, value]) => [name, JSON.stringify(value)]),
      ),
      bundle: true,
      format: 'esm',
      platform: 'browser',
      outfile: join(folder, 'app.mjs'),
    })
    const { stdout } = await execute(binaryOf(runtime, path, placed), args, { cwd: folder })
    const answers = '200 1, 200 0, 429 0, 200 1'
    expect(stdout.trim().split('\n')).toEqual([
      `${answers} memory,memory,memory,memory`,
      `${answers} redis,redis,redis,redis`,
    ])
  },
)

/**
 * Returns the executable for this platform: in the optional package that is installed, or in the runtime's own
 * package if an install script has moved it there.
 */
function binaryOf(runtime: string, path: string, placed: string): string {
  const require = createRequire(import.meta.url)
  const { optionalDependencies } = require(`${runtime}/package.json`)
  const packages = [...Object.keys(optionalDependencies), runtime]
  for (const name of packages) {
    try {
      const folder = dirname(require.resolve(`${name}/package.json`))
      const binary = join(folder, name === runtime ? placed : path)
      if (existsSync(binary)) return binary
    } catch {
      // For another platform.
    }
  }
  throw new Error(`${runtime} has no package for this platform`)
}
