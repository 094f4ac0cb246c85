// Fastify 5: five requests a minute for each address, and a route with a limit of its own.
import { fileURLToPath } from 'node:url'
import fastify from 'fastify'
import { createLimiter, slidingWindowLog, tokenBucket } from 'headgate'
import { rateLimit } from 'headgate/fastify'

const limiter = createLimiter({
  policies: {
    api: slidingWindowLog({ limit: 5, window: '1m' }),
    login: tokenBucket({ capacity: 2, refillPerSecond: 0.1 }),
  },
})

const app = fastify()
await app.register(rateLimit({ limiter, policy: 'api' }))
app.post('/login', { config: { rateLimit: { policy: 'login' } } }, async () => 'welcome\n')
app.get('/health', { config: { rateLimit: false } }, async () => 'well\n')
app.get('/', async () => 'hello\n')

/** Resolves with the server once it listens. */
export async function start(port = 3000) {
  await app.listen({ port, host: '127.0.0.1' })
  return app.server
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await start()
