// Express 5 or 4: five requests a minute for each address, and two logins with a slow refill.
import type { Server } from 'node:http'
import { fileURLToPath } from 'node:url'
import express from 'express'
import { createLimiter, slidingWindowLog, tokenBucket } from 'headgate'
import { rateLimit } from 'headgate/express'

const limiter = createLimiter({
  policies: {
    api: slidingWindowLog({ limit: 5, window: '1m' }),
    login: tokenBucket({ capacity: 2, refillPerSecond: 0.1 }),
  },
})

const app = express()
app.post('/login', rateLimit({ limiter, policy: 'login' }), (_req, res) => res.send('welcome\n'))
app.use(rateLimit({ limiter, policy: 'api' }))
app.get('/', (_req, res) => res.send('hello\n'))

/** Resolves with the server once it listens. */
export function start(port = 3000): Promise<Server> {
  return new Promise(resolve => {
    const server = app.listen(port, '127.0.0.1', () => resolve(server))
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await start()
