// better-auth with its rate limits in Headgate: five requests of an address to a path in any minute, three sign-ins in ten seconds.
import { createServer, type Server } from 'node:http'
import { fileURLToPath } from 'node:url'
import { betterAuth } from 'better-auth'
import { toNodeHandler } from 'better-auth/node'
import { createLimiter, slidingWindowLog } from 'headgate'
import { betterAuthStorage } from 'headgate/better-auth'

// With several processes: store: redisStore(client).
const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 100, window: '1m' }) } })

export const auth = betterAuth({
  baseURL: 'http://127.0.0.1:3000',
  secret: 'only for this example, thirty-two long',
  emailAndPassword: { enabled: true },
  rateLimit: { enabled: true, window: 60, max: 5, customStorage: betterAuthStorage({ limiter }) },
})

/** Resolves with the server once it listens. */
export function start(port = 3000): Promise<Server> {
  const server = createServer(toNodeHandler(auth))
  return new Promise(resolve => server.listen(port, '127.0.0.1', () => resolve(server)))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await start()
