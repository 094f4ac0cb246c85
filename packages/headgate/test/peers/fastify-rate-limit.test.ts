/**
 * What users of @fastify/rate-limit rely on, from its documentation: every case holds with its plugin, and with ours in
 * memory and on Redis, written as the page about it says.
 */
import peer, { type RateLimitPluginOptions } from '@fastify/rate-limit'
import fastify, { type FastifyInstance, type FastifyRequest, type InjectOptions } from 'fastify'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import type { RouteLimit } from '../../src/adapters/fastify.ts'
import { type FastifyOptions, rateLimit } from '../../src/fastify.ts'
import { createLimiter, type Limiter, type Store, slidingWindowLog } from '../../src/index.ts'
import { redisStore } from '../../src/redis.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'

let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const onEnd: (() => unknown)[] = []
afterEach(async () => {
  for (const end of onEnd.splice(0).reverse()) await end()
})

/** One limit of an app, as both plugins are told of it. */
interface Given {
  readonly max: number
  readonly key?: (request: FastifyRequest) => string
  readonly isFree?: (request: FastifyRequest) => boolean
  readonly headers?: 'none' | 'draft-06'
  readonly onDenied?: () => void
  readonly body?: (retryAfterMs: number) => object
}

interface Peer {
  register(app: FastifyInstance, given: Given): Promise<void>
  /** The options of a route with a limit of its own. */
  ofRoute(max: number): object
}

const DRAFT_NAMES = ['ratelimit-limit', 'ratelimit-remaining', 'ratelimit-reset']
const LEGACY_NAMES = DRAFT_NAMES.map(name => `x-${name}`)
const off = (names: readonly string[]) => Object.fromEntries(names.map(name => [name, false]))

function theirs(options: Partial<RateLimitPluginOptions> = {}): Peer {
  return {
    async register(app, { max, key, isFree, headers, onDenied, body }) {
      await app.register(peer, {
        max,
        timeWindow: '1 minute',
        ...(key && { keyGenerator: key }),
        ...(isFree && { allowList: isFree }),
        ...(headers === 'draft-06' && { enableDraftSpec: true }),
        ...(headers === 'none' && {
          addHeaders: off(LEGACY_NAMES),
          addHeadersOnExceeding: off(LEGACY_NAMES),
        }),
        ...(onDenied && { onExceeded: onDenied }),
        ...(body && {
          errorResponseBuilder: (_request, { ttl, statusCode }) => ({ statusCode, ...body(ttl) }),
        }),
        ...options,
      } as RateLimitPluginOptions)
    },
    ofRoute: max => ({ max, timeWindow: '1 minute' }),
  }
}

function ours(store: () => Store | undefined): Peer {
  return {
    async register(app, { max, key, isFree, headers, onDenied, body }) {
      const given = store()
      const limiter: Limiter<string, string> = createLimiter({
        ...(given && { store: given }),
        policies: {
          api: slidingWindowLog({ limit: max, window: '1m' }),
          ...Object.fromEntries(
            [1, 2, 3].map(limit => [`own-${limit}`, slidingWindowLog({ limit, window: '1m' })]),
          ),
        },
      })
      onEnd.push(() => limiter.close())
      await app.register(
        rateLimit({
          limiter,
          policy: 'api',
          useErrorHandler: body === undefined,
          ...(key && { subject: request => ({ type: 'user', id: key(request) }) }),
          ...(isFree && { skip: isFree }),
          ...(headers === 'draft-06' && { headers: { style: 'ietf', draft: 'draft-06' } }),
          ...(headers === 'none' && { headers: 'none' }),
          ...(onDenied && { onDenied }),
          ...(body && { body: ({ retryAfterMs }) => ({ statusCode: 429, ...body(retryAfterMs ?? 0) }) }),
        } satisfies FastifyOptions<string, string>),
      )
    },
    ofRoute: max => ({ policy: `own-${max}` }) satisfies RouteLimit,
  }
}

let prefixes = 0
const PEERS: readonly [string, () => Peer][] = [
  ['its own plugin in memory', () => theirs()],
  [
    'its own plugin on Redis',
    () => {
      const client = new Redis(redis.url)
      onEnd.push(() => client.disconnect())
      return theirs({ redis: client, nameSpace: `theirs-${prefixes++}-` })
    },
  ],
  ['ours in memory', () => ours(() => undefined)],
  [
    'ours on Redis',
    () =>
      ours(() => {
        const client = new Redis(redis.url, { lazyConnect: true })
        return redisStore(client, {
          prefix: `ours-${prefixes++}`,
          deadlineMs: 5_000,
          connectTimeoutMs: 5_000,
        })
      }),
  ],
]

describe.each(PEERS)('@fastify/rate-limit: %s', (_, open) => {
  async function start(given: Given, routes: (app: FastifyInstance, plugin: Peer) => unknown) {
    const app = fastify()
    onEnd.push(() => app.close())
    const plugin = open()
    await plugin.register(app, given)
    await routes(app, plugin)
    const ask = (url = '/', options: InjectOptions = {}) => app.inject({ url, ...options })
    const statuses = async (times: number, url?: string, options?: InjectOptions) => {
      const found: number[] = []
      for (let time = 0; time < times; time++) found.push((await ask(url, options)).statusCode)
      return found
    }
    return { app, ask, statuses }
  }
  const hello = (app: FastifyInstance) => app.get('/', async () => 'hello')

  it('admits the limit, then rejects as an error of Fastify that says when to come back', async () => {
    const { ask, statuses } = await start({ max: 2 }, hello)
    expect(await statuses(2)).toEqual([200, 200])
    const rejected = await ask()
    expect(rejected.statusCode).toBe(429)
    expect(rejected.headers['content-type']).toBe('application/json; charset=utf-8')
    expect(rejected.json()).toEqual({
      statusCode: 429,
      error: 'Too Many Requests',
      message: expect.any(String),
    })
  })

  it('tells limit and remaining with every answer, and Retry-After with a rejection', async () => {
    const { ask } = await start({ max: 2 }, hello)
    const told = async () => {
      const { headers } = await ask()
      return [headers['x-ratelimit-limit'], headers['x-ratelimit-remaining']].map(Number)
    }
    expect([await told(), await told(), await told()]).toEqual([
      [2, 1],
      [2, 0],
      [2, 0],
    ])
    const { headers } = await ask()
    expect(Number(headers['retry-after'])).toBeGreaterThan(30)
    expect(Number(headers['retry-after'])).toBeLessThanOrEqual(60)
  })

  it('tells the same by the names of the draft', async () => {
    const { ask } = await start({ max: 2, headers: 'draft-06' }, hello)
    const { headers } = await ask()
    expect([headers['ratelimit-limit'], headers['ratelimit-remaining']].map(Number)).toEqual([2, 1])
    expect(Number(headers['ratelimit-reset'])).toBeGreaterThan(30)
    expect(Number(headers['ratelimit-reset'])).toBeLessThanOrEqual(60)
    expect(headers['x-ratelimit-limit']).toBeUndefined()
  })

  it('tells none of it if it is told not to', async () => {
    const { ask } = await start({ max: 1, headers: 'none' }, hello)
    for (const { headers } of [await ask(), await ask()])
      expect(LEGACY_NAMES.map(name => headers[name])).toEqual([undefined, undefined, undefined])
  })

  it('gives each key a budget', async () => {
    const key = (request: FastifyRequest) => String(request.headers['x-user'])
    const { statuses } = await start({ max: 1, key }, hello)
    expect(await statuses(2, '/', { headers: { 'x-user': 'a' } })).toEqual([200, 429])
    expect(await statuses(2, '/', { headers: { 'x-user': 'b' } })).toEqual([200, 429])
  })

  it('gives each address a budget', async () => {
    const { statuses } = await start({ max: 1 }, hello)
    expect(await statuses(2, '/', { remoteAddress: '192.0.2.1' })).toEqual([200, 429])
    expect(await statuses(2, '/', { remoteAddress: '192.0.2.2' })).toEqual([200, 429])
    // Addresses that one subscriber may have are one caller.
    expect(await statuses(1, '/', { remoteAddress: '2001:db8:1:2::1' })).toEqual([200])
    expect(await statuses(1, '/', { remoteAddress: '2001:db8:1:2::2' })).toEqual([429])
  })

  it('counts nothing for those on the list', async () => {
    const isFree = (request: FastifyRequest) => request.headers['x-user'] === 'friend'
    const { ask, statuses } = await start({ max: 1, isFree }, hello)
    expect(await statuses(3, '/', { headers: { 'x-user': 'friend' } })).toEqual([200, 200, 200])
    expect((await ask('/', { headers: { 'x-user': 'friend' } })).headers['x-ratelimit-limit']).toBeUndefined()
    expect(await statuses(2)).toEqual([200, 429])
  })

  it('lets a route have its own limit, or none', async () => {
    const { statuses } = await start({ max: 2 }, (app, plugin) => {
      hello(app)
      app.get('/own', { config: { rateLimit: plugin.ofRoute(1) as RouteLimit } }, async () => 'own')
      app.get('/free', { config: { rateLimit: false } }, async () => 'free')
    })
    expect(await statuses(2, '/own')).toEqual([200, 429])
    expect(await statuses(5, '/free')).toEqual([200, 200, 200, 200, 200])
    expect(await statuses(3)).toEqual([200, 200, 429])
  })

  it('limits the routes of contexts below, and none of a context beside it', async () => {
    const app = fastify()
    onEnd.push(() => app.close())
    await app.register(async limited => {
      await open().register(limited, { max: 1 })
      limited.register(async below => void below.get('/below', async () => 'below'))
    })
    app.get('/beside', async () => 'beside')
    const ask = async (url: string) => (await app.inject(url)).statusCode
    expect([await ask('/below'), await ask('/below')]).toEqual([200, 429])
    expect([await ask('/beside'), await ask('/beside')]).toEqual([200, 200])
  })

  it('passes a rejection to the error handler, with its status, after the headers are set', async () => {
    const seen: unknown[] = []
    const { ask } = await start({ max: 1 }, app => {
      app.setErrorHandler((error, _request, reply) => {
        const { statusCode = 500 } = error as { statusCode?: number }
        seen.push(error instanceof Error, statusCode, reply.hasHeader('retry-after'))
        return reply.code(statusCode).send({ slow: 'down' })
      })
      hello(app)
    })
    await ask()
    const rejected = await ask()
    expect([rejected.statusCode, rejected.json()]).toEqual([429, { slow: 'down' }])
    expect(seen).toEqual([true, 429, true])
    expect(Number(rejected.headers['x-ratelimit-limit'])).toBe(1)
  })

  it('keeps the headers of rejections whose error handler fails', async () => {
    const { ask } = await start({ max: 1 }, app => {
      app.setErrorHandler(() => {
        throw new Error('and again')
      })
      hello(app)
    })
    await ask()
    const rejected = await ask()
    expect([rejected.statusCode >= 400, Number(rejected.headers['retry-after']) > 0]).toEqual([true, true])
  })

  it('answers what it is told to', async () => {
    const body = (retryAfterMs: number) => ({ code: 'SLOW_DOWN', isLater: retryAfterMs > 30_000 })
    const { ask } = await start({ max: 1, body }, hello)
    await ask()
    const rejected = await ask()
    expect([rejected.statusCode, rejected.json()]).toEqual([
      429,
      { statusCode: 429, code: 'SLOW_DOWN', isLater: true },
    ])
  })

  it('calls the listener for each rejection', async () => {
    let denied = 0
    const { statuses } = await start({ max: 1, onDenied: () => void denied++ }, hello)
    expect(await statuses(3)).toEqual([200, 429, 429])
    expect(denied).toBe(2)
  })

  it('runs before the body is parsed, and hooks of the app before it run first', async () => {
    const order: string[] = []
    const app = fastify()
    onEnd.push(() => app.close())
    app.addHook('onRequest', async () => void order.push('earlier'))
    await open().register(app, { max: 1 })
    app.addHook('preParsing', async () => void order.push('parsed'))
    app.post('/', async () => 'hello')
    await app.inject({ method: 'POST', url: '/', payload: { a: 1 } })
    expect((await app.inject({ method: 'POST', url: '/', payload: { a: 1 } })).statusCode).toBe(429)
    expect(order).toEqual(['earlier', 'parsed', 'earlier'])
  })

  it('runs the hooks that end a rejected request', async () => {
    const ended: number[] = []
    const { statuses } = await start({ max: 1 }, app => {
      app.addHook('onSend', async (_request, reply, payload) => {
        reply.header('x-sent', 'yes')
        return payload
      })
      app.addHook('onResponse', async (_request, reply) => void ended.push(reply.statusCode))
      hello(app)
    })
    expect(await statuses(2)).toEqual([200, 429])
    expect(ended).toEqual([200, 429])
  })
})

// Its own store in memory rejects all of them: each request reads the count after all of them have been counted.
it.each(PEERS.filter(([name]) => name !== 'its own plugin in memory'))(
  '@fastify/rate-limit: %s counts requests that come at once one by one',
  async (_, open) => {
    const app = fastify()
    onEnd.push(() => app.close())
    await open().register(app, { max: 5 })
    app.get('/', async () => 'hello')
    const answers = await Promise.all(Array.from({ length: 20 }, () => app.inject('/')))
    expect(answers.filter(({ statusCode }) => statusCode === 200)).toHaveLength(5)
  },
)

describe('what the page says is different', () => {
  const app = async (options: Partial<FastifyOptions<string, string>>, isTheirs = false) => {
    const made = fastify()
    onEnd.push(() => made.close())
    if (isTheirs) await theirs().register(made, { max: 1 })
    else {
      const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 1, window: '1m' }) } })
      const given = { limiter, policy: 'api', ...options } as FastifyOptions<string, string>
      await made.register(rateLimit(given))
    }
    return made
  }

  it('a rejection is a problem and passes no error handler, unless it is told to', async () => {
    for (const [useErrorHandler, status, type] of [
      [false, 429, 'application/problem+json; charset=utf-8'],
      [true, 500, 'text/plain; charset=utf-8'],
    ] as const) {
      const ours = await app({ useErrorHandler })
      ours.setErrorHandler((_error, _request, reply) => reply.code(500).send('sorry'))
      ours.get('/', async () => 'hello')
      await ours.inject('/')
      const { statusCode, headers } = await ours.inject('/')
      expect([statusCode, headers['content-type']]).toEqual([status, type])
    }
  })

  it('X-RateLimit-Reset is a Unix time; there it is the seconds that are left', async () => {
    const resets: number[] = []
    for (const made of [await app({}), await app({}, true)]) {
      made.get('/', async () => 'hello')
      resets.push(Number((await made.inject('/')).headers['x-ratelimit-reset']))
    }
    expect([(resets[0] as number) > 1e9, (resets[1] as number) <= 60]).toEqual([true, true])
  })

  it('routes that name the same policy share a budget, unless they set perRoute', async () => {
    const ask = async (own: RouteLimit) => {
      const made = await app({})
      for (const url of ['/a', '/b']) made.get(url, { config: { rateLimit: own } }, async () => 'hello')
      return [(await made.inject('/a')).statusCode, (await made.inject('/b')).statusCode]
    }
    expect(await ask({ policy: 'api' })).toEqual([200, 429])
    expect(await ask({ policy: 'api', perRoute: true })).toEqual([200, 200])
  })

  it('requests that match no route are limited too', async () => {
    const made = await app({})
    expect([(await made.inject('/missing')).statusCode, (await made.inject('/missing')).statusCode]).toEqual([
      404, 429,
    ])
  })
})
