// A handler whose store is handed in: Redis in production, one that fails on demand in a test.
import { createLimiter, decisionProblem, type Store, slidingWindowLog } from 'headgate'

export function createApp(store: Store) {
  const limiter = createLimiter({
    store,
    policies: {
      page: slidingWindowLog({ limit: 100, window: '1m' }),
      login: slidingWindowLog({ limit: 5, window: '1m' }),
    },
  })

  /** While the store is away, pages stay available, but nobody may guess passwords uncounted. */
  function check(path: string) {
    return path === '/login'
      ? limiter.check('ip:203.0.113.7', { policy: 'login', onStoreFailure: 'closed' })
      : limiter.check('ip:203.0.113.7', { policy: 'page' })
  }

  return {
    async fetch(request: Request) {
      const decision = await check(new URL(request.url).pathname)
      if (decision.allowed) return new Response(`decided by ${decision.source}\n`)
      const { status, body } = decisionProblem(decision)
      return Response.json(body, { status })
    },
    close: () => limiter.close(),
  }
}
