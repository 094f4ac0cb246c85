// Hono 4 on Node: five requests a minute for each address, and two logins with a slow refill.
import { fileURLToPath } from 'node:url'
import { type ServerType, serve } from '@hono/node-server'
import { createLimiter, slidingWindowLog, tokenBucket } from 'headgate'
import { rateLimit } from 'headgate/hono'
import { Hono } from 'hono'

const limiter = createLimiter({
  policies: {
    api: slidingWindowLog({ limit: 5, window: '1m' }),
    login: tokenBucket({ capacity: 2, refillPerSecond: 0.1 }),
  },
})

const app = new Hono()
app.post('/login', rateLimit({ limiter, policy: 'login' }), context => context.text('welcome\n'))
app.use(rateLimit({ limiter, policy: 'api' }))
app.get('/', context => context.text('hello\n'))

/** Resolves with the server once it listens. */
export function start(port = 3000): Promise<ServerType> {
  return new Promise(resolve => {
    const server = serve({ fetch: app.fetch, port, hostname: '127.0.0.1' }, () => resolve(server))
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await start()
