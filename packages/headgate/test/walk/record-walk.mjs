// Makes one check, or decides one request by the rules, on Redis after the code has warmed up, and prints which functions
// of the library ran for it.
//
//   node record-walk.mjs <redis url> check|unit|request

import { Session } from 'node:inspector/promises'
import { createGate, createLimiter, slidingWindowCounter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis'

const [url, kind] = process.argv.slice(2)
const client = new Redis(url)
const store = redisStore(client, { processes: 1, deadlineMs: 5_000 })
const api = slidingWindowCounter({ limit: 1_000, window: '1h' })
const limiter = createLimiter({ store, policies: { api } })
const rules = [{ match: { method: 'GET', path: '/things/:id' }, policy: 'api' }]
const gate = createGate({ store, config: defineConfig({ policies: { api }, rules }) })
const asks = {
  check: () => limiter.check('user:42', { policy: 'api', cost: 2 }),
  unit: () => limiter.check('user:42', { policy: 'api' }),
  request: () => gate.request({ subject: 'user:42', method: 'GET', path: '/things/7', cost: 2 }),
}
const ask = asks[kind]

await store.ready()
for (let count = 0; count < 20; count++) await ask()
const session = new Session()
session.connect()
await session.post('Profiler.enable')
await session.post('Profiler.startPreciseCoverage', { callCount: true, detailed: false })
await session.post('Profiler.takePreciseCoverage')
await ask()
const { result } = await session.post('Profiler.takePreciseCoverage')
session.disconnect()
const ran = result
  .filter(script => script.url.includes('/headgate/dist/'))
  .map(script => ({
    file: script.url.replace(/.*\/headgate\/dist\//, '').replace(/\.js$/, '.ts'),
    functions: script.functions
      .filter(({ ranges, functionName }) => ranges[0].count > 0 && functionName !== '')
      .map(({ functionName }) => functionName),
  }))
  .filter(({ functions }) => functions.length > 0)
process.stdout.write(`${JSON.stringify(ran)}\n`)
await gate.close()
client.disconnect()
