// tRPC 11: five calls a minute for each user, and two exports with a slow refill.
import type { Server } from 'node:http'
import { fileURLToPath } from 'node:url'
import { initTRPC } from '@trpc/server'
import { createHTTPServer } from '@trpc/server/adapters/standalone'
import { createLimiter, slidingWindowLog, tokenBucket } from 'headgate'
import { rateLimit, rateLimitHeaders, rateLimitOf } from 'headgate/trpc'

const limiter = createLimiter({
  policies: {
    api: slidingWindowLog({ limit: 5, window: '1m' }),
    export: tokenBucket({ capacity: 2, refillPerSecond: 0.1 }),
  },
})

interface Context {
  readonly user: string
}

const t = initTRPC.context<Context>().create({
  errorFormatter: ({ shape, error }) => ({
    ...shape,
    data: { ...shape.data, rateLimit: rateLimitOf(error) },
  }),
})
const subject = ({ ctx }: { ctx: Context }) => `user:${ctx.user}`
const limited = t.procedure.use(rateLimit({ limiter, policy: 'api', subject }))

const router = t.router({
  hello: limited.query(({ ctx }) => `hello, ${ctx.user}`),
  export: t.procedure.use(rateLimit({ limiter, policy: 'export', subject })).mutation(() => 'exported'),
})

/** Resolves with the server once it listens. */
export function start(port = 3000): Promise<Server> {
  const server = createHTTPServer({
    router,
    createContext: ({ req }) => ({ user: String(req.headers['x-user'] ?? 'nobody') }),
    responseMeta: ({ errors }) => ({ headers: rateLimitHeaders(errors) }),
  })
  return new Promise(resolve => server.listen(port, '127.0.0.1', () => resolve(server)))
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await start()
