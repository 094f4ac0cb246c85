// Makes one check, or has one request decided, on Redis after the code has warmed up, and prints which functions of the
// library ran for it.
//
//   node record-walk.mjs <redis url> check|unit|request|http

import { once } from 'node:events'
import express from 'express'
import { createGate, createLimiter, slidingWindowCounter } from 'headgate'
import { defineConfig } from 'headgate/config'
import { rateLimit } from 'headgate/express'
import { redisStore } from 'headgate/redis'
import { Redis } from 'ioredis'
import { recordCalls } from './record-calls.mjs'

const [url, kind] = process.argv.slice(2)
const client = new Redis(url)
const store = redisStore(client, { processes: 1, deadlineMs: 5_000 })
const api = slidingWindowCounter({ limit: 1_000, window: '1h' })
const limiter = createLimiter({ store, policies: { api } })
const rules = [{ match: { method: 'GET', path: '/things/:id' }, policy: 'api' }]
const gate = createGate({ store, config: defineConfig({ policies: { api }, rules }) })
const server = express()
  .use(rateLimit({ gate }))
  .get('/things/:id', (_req, res) => void res.end())
  .listen(0, '127.0.0.1')
await once(server, 'listening')
const asks = {
  check: () => limiter.check('user:42', { policy: 'api', cost: 2 }),
  unit: () => limiter.check('user:42', { policy: 'api' }),
  request: () => gate.request({ subject: 'user:42', method: 'GET', path: '/things/7', cost: 2 }),
  async http() {
    const response = await fetch(`http://127.0.0.1:${server.address().port}/things/7`)
    if (!response.headers.has('x-ratelimit-remaining')) throw new Error(`${response.status}, and no quota`)
  },
}

await store.ready()
process.stdout.write(`${JSON.stringify(await recordCalls('/headgate/dist/', asks[kind]))}\n`)
server.closeAllConnections()
server.close()
await gate.close()
client.disconnect()
