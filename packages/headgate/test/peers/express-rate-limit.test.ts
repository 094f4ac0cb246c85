/**
 * What users of express-rate-limit rely on, from its documentation: every case holds with its own store and with ours,
 * in memory and on Redis.
 */
import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import express, { type Request, type RequestHandler } from 'express'
import {
  MemoryStore,
  type Options,
  type RateLimitInfo,
  type RateLimitRequestHandler,
  rateLimit,
  type Store,
} from 'express-rate-limit'
import { createClient } from 'redis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { rateLimit as ourRateLimit } from '../../src/express.ts'
import { rateLimitStore } from '../../src/express-rate-limit.ts'
import { createLimiter, memoryStore, type Store as OurStore, slidingWindowLog } from '../../src/index.ts'
import { redisStore } from '../../src/redis.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { waitUntil } from '../support/wait-until.ts'

let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const onEnd: (() => unknown)[] = []
afterEach(async () => {
  for (const end of onEnd.splice(0).reverse()) await end()
})

function ours(store: OurStore): Store {
  const name = `case-${Math.random().toString(36).slice(2)}`
  const hits = rateLimitStore({ store, name, subject: { secret: 'a-secret' } })
  onEnd.push(() => hits.shutdown?.())
  return hits
}

const onRedis = () =>
  redisStore(createClient({ url: redis.url }), { deadlineMs: 5_000, connectTimeoutMs: 5_000 })

const STORES: readonly [string, () => Store][] = [
  ['its own store', () => new MemoryStore()],
  ['ours in memory', () => ours(memoryStore())],
  ['ours on Redis', () => ours(onRedis())],
]

interface Asked {
  readonly key?: string
  readonly path?: string
  readonly headers?: Record<string, string>
}

interface Answered {
  readonly status: number
  readonly headers: Headers
  readonly body: string
}

/** Starts an app with these middlewares before its handler. */
async function serve(...layers: readonly RequestHandler[]) {
  const app = express()
  for (const layer of layers) app.use(layer)
  app.get('/', (request, response) => {
    const { rateLimit: info } = request as Request & { rateLimit?: RateLimitInfo }
    response.status(Number(request.query.status ?? 200)).json(info ?? null)
  })
  let slow = 0
  app.get('/slow', () => void slow++)
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onEnd.push(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const ask = async ({ key = 'somebody', path = '/', headers = {} }: Asked = {}): Promise<Answered> => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { 'x-key': key, ...headers } })
    return { status: response.status, headers: response.headers, body: await response.text() }
  }
  const statuses = async (times: number, asked?: Asked) => {
    const found: number[] = []
    for (let time = 0; time < times; time++) found.push((await ask(asked)).status)
    return found
  }
  const reached = (times: number) => waitUntil(`${times} slow requests`, () => slow >= times)
  return { ask, statuses, reached, port, app }
}

/** Waits until somebody has this many hits: they are taken back when the response has ended. */
function hasHits(middleware: RateLimitRequestHandler, hits: number): Promise<void> {
  return waitUntil(`${hits} hits`, async () => {
    expect((await middleware.getKey('somebody'))?.totalHits ?? 0).toBe(hits)
    return true
  })
}

const byHeader = (request: { get(name: string): string | undefined }) => request.get('x-key') ?? ''

describe.each(STORES)('express-rate-limit with %s', (_, open) => {
  const limited = (options: Partial<Options> = {}) =>
    rateLimit({ windowMs: 60_000, limit: 2, keyGenerator: byHeader, ...options, store: open() })

  it('admits the limit, then answers 429 with the default message, each key by itself', async () => {
    const { ask, statuses } = await serve(limited())
    expect(await statuses(2)).toEqual([200, 200])
    const denied = await ask()
    expect([denied.status, denied.body]).toEqual([429, 'Too many requests, please try again later.'])
    expect((await ask({ key: 'somebody-else' })).status).toBe(200)
  })

  it('takes `max` for `limit`, and five where neither is given', async () => {
    const { statuses } = await serve(rateLimit({ max: 1, keyGenerator: byHeader, store: open() }))
    expect(await statuses(2)).toEqual([200, 429])
    const other = await serve(rateLimit({ keyGenerator: byHeader, store: open() }))
    expect(await other.statuses(6)).toEqual([200, 200, 200, 200, 200, 429])
  })

  it('counts requests that come at once one by one', async () => {
    const { ask } = await serve(limited({ limit: 5 }))
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask()))
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(5)
  })

  it('admits again when a window has passed', async () => {
    const { ask, statuses } = await serve(limited({ windowMs: 1_000, limit: 1 }))
    expect(await statuses(2)).toEqual([200, 429])
    await new Promise(resolve => setTimeout(resolve, 1_050))
    expect((await ask()).status).toBe(200)
  })

  it('admits all requests that are further apart than the window, also where the limit is a function', async () => {
    const { ask } = await serve(limited({ windowMs: 100, limit: () => 1 }))
    for (let time = 0; time < 5; time++) {
      expect((await ask()).status).toBe(200)
      await new Promise(resolve => setTimeout(resolve, 110))
    }
  })

  it.each([
    ['a text', 'slow down', 'slow down'],
    ['an object', { error: 'slow down' }, '{"error":"slow down"}'],
    ['a function', async () => 'slow down', 'slow down'],
  ])('answers with the status and message it is given: %s', async (_kind, message, body) => {
    const { ask } = await serve(limited({ limit: 1, statusCode: 420, message }))
    await ask()
    const denied = await ask()
    expect([denied.status, denied.body]).toEqual([420, body])
  })

  it('leaves the answer to `handler`, with the options in use', async () => {
    const { ask } = await serve(
      limited({
        limit: 1,
        handler: (_request, response, _next, options) =>
          void response.status(418).send(String(options.limit)),
      }),
    )
    await ask()
    const denied = await ask()
    expect([denied.status, denied.body]).toEqual([418, '1'])
  })

  it('counts nothing for what `skip` accepts', async () => {
    const { statuses } = await serve(limited({ limit: 1, skip: async request => 'free' in request.query }))
    expect(await statuses(3, { path: '/?free' })).toEqual([200, 200, 200])
    expect(await statuses(2)).toEqual([200, 429])
  })

  it('tells the request what was used, by the name it is given', async () => {
    const { ask } = await serve(limited({ limit: 3, keyGenerator: async request => byHeader(request) }))
    await ask()
    const { resetTime, ...info } = JSON.parse((await ask()).body)
    expect(info).toEqual({ limit: 3, used: 2, remaining: 1, key: 'somebody' })
    expect(Date.parse(resetTime) - Date.now()).toBeGreaterThan(30_000)
    expect(Date.parse(resetTime) - Date.now()).toBeLessThanOrEqual(60_500)
    const other = await serve(
      limited({ requestPropertyName: 'hits' }),
      (request: Request, _: unknown, next: () => void) => {
        expect((request as Request & { hits: RateLimitInfo }).hits.used).toBe(1)
        next()
      },
    )
    expect(await other.statuses(1)).toEqual([200])
  })

  it('writes X-RateLimit-* unless told not to, and Retry-After on a denial', async () => {
    const { ask } = await serve(limited())
    const { headers } = await ask()
    expect([headers.get('x-ratelimit-limit'), headers.get('x-ratelimit-remaining')]).toEqual(['2', '1'])
    const leftSeconds = Number(headers.get('x-ratelimit-reset')) - Date.now() / 1_000
    expect([leftSeconds > 30, leftSeconds < 62, headers.get('retry-after')]).toEqual([true, true, null])
    await ask()
    const denied = await ask()
    expect(denied.headers.get('x-ratelimit-remaining')).toBe('0')
    const retryAfter = Number(denied.headers.get('retry-after'))
    expect([retryAfter > 30, retryAfter <= 60]).toEqual([true, true])
    const plain = await serve(limited({ limit: 1, legacyHeaders: false }))
    await plain.ask()
    const silent = (await plain.ask()).headers
    expect([silent.get('x-ratelimit-limit'), silent.get('retry-after')]).toEqual([null, null])
  })

  it('writes the headers of draft 6', async () => {
    const { ask } = await serve(limited({ standardHeaders: true, legacyHeaders: false }))
    const { headers } = await ask()
    expect(['policy', 'limit', 'remaining'].map(name => headers.get(`ratelimit-${name}`))).toEqual([
      '2;w=60',
      '2',
      '1',
    ])
    expect(Number(headers.get('ratelimit-reset'))).toBeGreaterThan(30)
    expect(Number(headers.get('ratelimit-reset'))).toBeLessThanOrEqual(60)
  })

  it('writes the headers of draft 7', async () => {
    const { ask } = await serve(limited({ standardHeaders: 'draft-7' }))
    const { headers } = await ask()
    expect(headers.get('ratelimit-policy')).toBe('2;w=60')
    expect(headers.get('ratelimit')).toMatch(/^limit=2, remaining=1, reset=(5\d|60)$/)
  })

  it('writes the headers of draft 8, several policies beside each other', async () => {
    const short = limited({ standardHeaders: 'draft-8', identifier: 'short' })
    const long = limited({ standardHeaders: 'draft-8', limit: 10, windowMs: 3_600_000 })
    const { ask } = await serve(short, long)
    const { headers } = await ask()
    expect(headers.get('ratelimit')).toMatch(/^"short"; r=1; t=(5\d|60), "10-in-1hr"; r=9; t=3[56]\d\d$/)
    expect(headers.get('ratelimit-policy')).toMatch(
      /^"short"; q=2; w=60; pk=:.+:, "10-in-1hr"; q=10; w=3600; pk=:.+:$/,
    )
  })

  it('asks a `limit` that is a function for each request', async () => {
    const limit = async (request: Request) => (request.get('x-plan') === 'pro' ? 3 : 1)
    const { ask, statuses } = await serve(limited({ limit: limit as Options['limit'] }))
    expect(await statuses(4, { key: 'pro', headers: { 'x-plan': 'pro' } })).toEqual([200, 200, 200, 429])
    expect(await statuses(2, { key: 'free' })).toEqual([200, 429])
    expect((await ask({ key: 'new' })).headers.get('x-ratelimit-limit')).toBe('1')
  })

  it('denies everything at a limit of 0', async () => {
    const { ask } = await serve(limited({ limit: 0, validate: false }))
    const denied = await ask()
    expect([denied.status, denied.headers.get('x-ratelimit-reset')]).toEqual([
      429,
      expect.stringMatching(/^\d+$/),
    ])
    expect(Number(denied.headers.get('retry-after'))).toBeLessThanOrEqual(60)
  })

  it('counts on above a limit of 0, by which express-slow-down delays each request more', async () => {
    const handler: Options['handler'] = (_request, _response, next) => next()
    const middleware = limited({ limit: 0, validate: false, handler })
    const { ask } = await serve(middleware)
    const used: number[] = []
    for (let time = 0; time < 4; time++) used.push(JSON.parse((await ask()).body).used)
    expect(used).toEqual([1, 2, 3, 4])
    expect((await middleware.getKey('somebody'))?.totalHits).toBe(4)
    await middleware.resetKey('somebody')
    expect(await middleware.getKey('somebody')).toBeUndefined()
  })

  it('counts nothing for failures with `skipFailedRequests`', async () => {
    const middleware = limited({ skipFailedRequests: true })
    const { statuses } = await serve(middleware)
    expect(await statuses(4, { path: '/?status=500' })).toEqual([500, 500, 500, 500])
    await hasHits(middleware, 0)
    expect(await statuses(4)).toEqual([200, 200, 429, 429])
  })

  it('counts nothing for successes with `skipSuccessfulRequests`', async () => {
    const middleware = limited({ skipSuccessfulRequests: true })
    const { statuses } = await serve(middleware)
    expect(await statuses(4)).toEqual([200, 200, 200, 200])
    await hasHits(middleware, 0)
    expect(await statuses(3, { path: '/?status=401' })).toEqual([401, 401, 429])
  })

  it('asks `requestWasSuccessful` which is which', async () => {
    const requestWasSuccessful: Options['requestWasSuccessful'] = (_request, { statusCode }) =>
      statusCode === 404
    const middleware = limited({ skipSuccessfulRequests: true, requestWasSuccessful })
    const { statuses } = await serve(middleware)
    expect(await statuses(3, { path: '/?status=404' })).toEqual([404, 404, 404])
    await hasHits(middleware, 0)
    expect(await statuses(3)).toEqual([200, 200, 429])
  })

  it('counts nothing for a request whose client has left, with `skipFailedRequests`', async () => {
    const middleware = limited({ skipFailedRequests: true })
    const { port, statuses } = await serve(middleware)
    const socket = connect(port, '127.0.0.1').on('error', () => {})
    socket.write('GET /slow HTTP/1.1\r\nhost: localhost\r\nx-key: somebody\r\n\r\n')
    await hasHits(middleware, 1)
    socket.destroy()
    await hasHits(middleware, 0)
    expect(await statuses(3)).toEqual([200, 200, 429])
  })

  it('tells the hits of a key, and forgets them', async () => {
    const middleware = limited({ limit: 5 })
    const { ask, statuses } = await serve(middleware)
    expect(await middleware.getKey('somebody')).toBeUndefined()
    await statuses(3)
    const info = await middleware.getKey('somebody')
    expect([info?.totalHits, info?.resetTime instanceof Date]).toEqual([3, true])
    expect(await middleware.getKey('somebody-else')).toBeUndefined()
    await middleware.resetKey('somebody')
    expect(await middleware.getKey('somebody')).toBeUndefined()
    expect((await ask()).headers.get('x-ratelimit-remaining')).toBe('4')
  })

  it('lets a key start anew when it is forgotten after a denial', async () => {
    const middleware = limited()
    const { statuses } = await serve(middleware)
    expect(await statuses(3)).toEqual([200, 200, 429])
    await middleware.resetKey('somebody')
    expect(await statuses(3)).toEqual([200, 200, 429])
  })

  it('counts addresses of one IPv6 network together, and an IPv4 address by itself in either notation', async () => {
    const app = limited({ keyGenerator: undefined as unknown as Options['keyGenerator'] })
    const { app: server, ask } = await serve(app)
    server.set('trust proxy', 'loopback')
    const from = (address: string) => ask({ headers: { 'x-forwarded-for': address } })
    const statusesFrom = async (...addresses: string[]) => {
      const found: number[] = []
      for (const address of addresses) found.push((await from(address)).status)
      return found
    }
    expect(await statusesFrom('2001:db8:1:1::1', '2001:db8:1:2::2', '2001:db8:1:3::3')).toEqual([
      200, 200, 429,
    ])
    expect(await statusesFrom('2001:db8:2:0100::1')).toEqual([200])
    expect(await statusesFrom('192.0.2.1', '::ffff:192.0.2.1', '192.0.2.1', '192.0.2.2')).toEqual([
      200, 200, 429, 200,
    ])
  })

  it.each([
    ['an empty text', ''],
    ['undefined', undefined],
  ])('lets callers whose key is %s share a budget', async (_kind, key) => {
    const { statuses } = await serve(limited({ keyGenerator: () => key as string }))
    expect(await statuses(3)).toEqual([200, 200, 429])
  })

  it('complains when one store is given to two middlewares', async () => {
    const errors: { code?: string }[] = []
    const logger = { warn() {}, error: (error: unknown) => void errors.push(error as { code?: string }) }
    const store = open()
    for (let time = 0; time < 2; time++) rateLimit({ keyGenerator: byHeader, logger, store })
    expect(errors.map(({ code }) => code)).toEqual(['ERR_ERL_STORE_REUSE'])
  })

  it('complains about nothing where middlewares with stores of their own follow each other', async () => {
    const errors: unknown[] = []
    const logger = {
      warn: (warning: unknown) => void errors.push(warning),
      error: (error: unknown) => void errors.push(error),
    }
    const { statuses } = await serve(limited({ logger }), limited({ logger, limit: 1 }))
    expect(await statuses(2)).toEqual([200, 429])
    expect(errors).toEqual([])
  })

  it('can be used as a store by itself', async () => {
    const store = open()
    rateLimit({ windowMs: 60_000, limit: 10, keyGenerator: byHeader, store })
    const [first, second] = [await store.increment('a'), await store.increment('a')]
    expect(second.totalHits).toBe(2)
    // Its own store returns the same object each time.
    expect(first.totalHits).toBeLessThanOrEqual(2)
    await store.increment('b')
    await store.decrement('a')
    expect([(await store.get?.('a'))?.totalHits, (await store.get?.('b'))?.totalHits]).toEqual([1, 1])
    await store.decrement('never-seen')
    expect((await store.increment('never-seen')).totalHits).toBe(1)
    await store.resetKey('a')
    expect((await store.increment('a')).totalHits).toBe(1)
  })
})

describe('what only our stores share', () => {
  it('two middlewares with the same name on the same store are found out', async () => {
    const store = memoryStore()
    const errors: { code?: string }[] = []
    const logger = { warn() {}, error: (error: unknown) => void errors.push(error as { code?: string }) }
    const layer = () =>
      rateLimit({
        keyGenerator: byHeader,
        logger,
        store: rateLimitStore({ store, subject: { secret: 'a-secret' } }),
      })
    const { ask } = await serve(layer(), layer())
    await ask()
    expect(errors.map(({ code }) => code)).toEqual(['ERR_ERL_DOUBLE_COUNT'])
  })

  it('two processes share the hits of a key', async () => {
    const [one, other] = [onRedis(), onRedis()].map(store =>
      rateLimit({
        windowMs: 60_000,
        limit: 3,
        keyGenerator: byHeader,
        store: rateLimitStore({ store, name: 'shared', subject: { secret: 'a-secret' } }),
      }),
    )
    const [first, second] = [await serve(one as RequestHandler), await serve(other as RequestHandler)]
    expect(await first.statuses(2)).toEqual([200, 200])
    expect(await second.statuses(2)).toEqual([200, 429])
    expect((await first.ask()).status).toBe(429)
  })
})

/** The rows of the page about changing the middleware. */
describe('the middleware of Headgate instead', () => {
  type Our = Omit<Parameters<typeof ourRateLimit>[0], 'limiter' | 'policy'>

  async function both(theirs: Partial<Options>, our: object) {
    const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 2, window: '1m' }) } })
    onEnd.push(() => limiter.close())
    const subject = (request: Request) => `user:${byHeader(request)}` as const
    return [
      await serve(
        rateLimit({ windowMs: 60_000, limit: 2, keyGenerator: byHeader, legacyHeaders: false, ...theirs }),
      ),
      await serve(ourRateLimit({ limiter, policy: 'api', subject, ...(our as Our) } as never)),
    ] as const
  }

  it.each([
    [
      'draft-6',
      'draft-06',
      ['ratelimit-policy', 'ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset'],
    ],
    ['draft-7', 'draft-07', ['ratelimit-policy', 'ratelimit']],
  ] as const)('writes the same headers of %s', async (standardHeaders, draft, names) => {
    const [theirs, ours] = await both({ standardHeaders }, { headers: { style: 'ietf', draft } })
    for (let time = 0; time < 3; time++) {
      const answers = [await theirs.ask(), await ours.ask()]
      expect(answers[0]?.status).toBe(answers[1]?.status)
      // The seconds may differ by one.
      const [one, other] = answers.map(({ headers }) =>
        names.map(name => headers.get(name)?.replace(/\b(59|60)$/, 'a minute')),
      )
      expect(one).toEqual(other)
    }
  })

  it('gives failures back by their status, as many as the limit, but not what a client has left', async () => {
    const [theirs, ours] = await both(
      { skipFailedRequests: true },
      { refundIf: (status: number) => status >= 400 },
    )
    for (const { ask, statuses } of [theirs, ours]) {
      expect((await ask({ path: '/?status=500' })).status).toBe(500)
      // What is given back is so when the response has ended.
      await waitUntil('a refund', async () => (await ask({ path: '/?status=500' })).status === 500)
      await new Promise(resolve => setTimeout(resolve, 100))
      expect(await statuses(3)).toEqual([200, 200, 429])
    }
    const failing = { key: 'failing', path: '/?status=500' }
    await waitUntil('all that comes back to be back', async () => (await ours.ask(failing)).status === 429)
    const socket = connect(ours.port, '127.0.0.1').on('error', () => {})
    socket.write('GET /slow HTTP/1.1\r\nhost: localhost\r\nx-key: left\r\n\r\n')
    await ours.reached(1)
    socket.destroy()
    expect(await ours.statuses(2, { key: 'left' })).toEqual([200, 429])
  })
})
