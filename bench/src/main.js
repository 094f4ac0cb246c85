/**
 * Runs all benches one after the other: the embedded store, limits on Redis, web servers, services. Starts and stops its own Redis.
 *
 *   npm run bench                        about twenty minutes; writes bench/results, the charts and the docs
 *   npm run bench -- --quick             about three minutes; rough, writes nothing
 *   npm run bench -- --only redis,http   some of: embedded, redis, http, services
 *   npm run bench -- --strict            exit code 1 if a target was missed
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { helpIfAsked } from './harness/help.js'

helpIfAsked(import.meta.url)

const PARTS = {
  embedded: './embedded.js',
  redis: './redis/main.js',
  http: './http/main.js',
  services: './services/main.js',
}

const { values: options } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
    only: { type: 'string', default: Object.keys(PARTS).join(',') },
  },
})
const wanted = options.only.split(',')
const unknown = wanted.find(part => !Object.hasOwn(PARTS, part))
if (unknown !== undefined)
  throw new Error(`--only: expected any of ${Object.keys(PARTS).join(', ')}; got '${unknown}'`)
const passedOn = [...(options.quick ? ['--quick'] : []), ...(options.strict ? ['--strict'] : [])]

for (const [part, file] of Object.entries(PARTS)) {
  if (!wanted.includes(part)) continue
  const path = fileURLToPath(new URL(file, import.meta.url))
  const child = spawn(process.execPath, [path, ...passedOn], { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  if (code !== 0) process.exitCode = 1
}
