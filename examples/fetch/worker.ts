// A handler for any runtime that speaks fetch: Workers, Deno, Bun, Node. Callers without an API key share one budget.
import { createLimiter, slidingWindowLog } from 'headgate'
import { rateLimit } from 'headgate/fetch'

const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 5, window: '1m' }) } })

const limited = rateLimit({
  limiter,
  policy: 'api',
  // An API key is a secret: it is hashed before it is kept.
  subject: request => ({ type: 'apikey', id: request.headers.get('x-api-key') ?? 'nobody' }),
})

export default { fetch: limited(() => new Response('hello\n')) }
