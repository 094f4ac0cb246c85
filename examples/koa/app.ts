// Koa 3: five requests a minute for each address, and two logins with a slow refill.
import type { Server } from 'node:http'
import { fileURLToPath } from 'node:url'
import Router from '@koa/router'
import { createLimiter, slidingWindowLog, tokenBucket } from 'headgate'
import { rateLimit } from 'headgate/koa'
import Koa from 'koa'

const limiter = createLimiter({
  policies: {
    api: slidingWindowLog({ limit: 5, window: '1m' }),
    login: tokenBucket({ capacity: 2, refillPerSecond: 0.1 }),
  },
})

const router = new Router()
router.post('/login', rateLimit({ limiter, policy: 'login' }), ctx => {
  ctx.body = 'welcome\n'
})

const app = new Koa()
app.use(router.routes())
app.use(rateLimit({ limiter, policy: 'api' }))
app.use(ctx => {
  ctx.body = 'hello\n'
})

/** Resolves with the server once it listens. */
export function start(port = 3000): Promise<Server> {
  return new Promise(resolve => {
    const server = app.listen(port, '127.0.0.1', () => resolve(server))
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await start()
