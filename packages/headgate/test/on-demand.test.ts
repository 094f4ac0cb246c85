/** A store over HTTP, as at the edge: nothing runs outside of requests. */
import { Redis } from '@upstash/redis'
import { Hono } from 'hono'
import { describe, expect, it, vi } from 'vitest'
import { rateLimit } from '../src/fetch.ts'
import { rateLimit as limitHono } from '../src/hono.ts'
import { createLimiter, slidingWindowLog } from '../src/index.ts'
import { rateLimit as proxyOf } from '../src/next.ts'
import { redisStore } from '../src/redis.ts'
import { startRedis } from './support/redis-process.ts'
import { startRestFront } from './support/rest-front.ts'
import { configOf } from './support/rule-config.ts'

/** Creates a connection that keeps what it is sent and answers on command. */
function slowConnection() {
  const sent: { answer(reply: unknown): void; fail(error: Error): void }[] = []
  const send = () =>
    new Promise<unknown>((resolve, reject) => {
      sent.push({ answer: resolve, fail: reject })
    })
  return { sent, connection: { onDemand: true, evalsha: send, eval: send } }
}

const silent = { info() {}, warn() {}, error() {} }
const policies = { api: slidingWindowLog({ limit: 2, window: '1m' }) }

it('a store on demand sends nothing and sets no timer before the first request, behind a limiter or a limiter', async () => {
  const timers = [vi.spyOn(globalThis, 'setTimeout'), vi.spyOn(globalThis, 'setInterval')]
  const random = vi.spyOn(Math, 'random')
  const { sent, connection } = slowConnection()
  const store = () => redisStore(connection, { logger: silent })
  const limiter = createLimiter({ store: store(), policies })
  const ruled = createLimiter({ store: store(), config: configOf() })
  await null
  expect([sent.length, ...[...timers, random].map(spy => spy.mock.calls.length)]).toEqual([0, 0, 0, 0])
  vi.restoreAllMocks()
  expect((await limiter.check('user:1', { policy: 'api' })).source).toBe('local')
  // The question, and the heartbeat of this process.
  expect(sent.length).toBeGreaterThan(1)
  await limiter.close()
  await ruled.close()
})

it('a store on demand finds Redis again by the requests that come, without a timer between them', async () => {
  const redis = await startRedis()
  const front = await startRestFront(redis.port)
  const states: string[] = []
  const store = redisStore(new Redis({ url: front.url, token: front.token }), {
    deadlineMs: 1_000,
    probeAfterMs: 20,
    logger: silent,
    onEvent: event => event.type === 'breaker' && states.push(event.state),
  })
  const limiter = createLimiter({ store, policies: { api: slidingWindowLog({ limit: 999, window: '1m' }) } })
  const ask = async () => (await limiter.check('user:1', { policy: 'api' })).source
  try {
    expect(await ask()).toBe('redis')
    front.loseReplies(Number.POSITIVE_INFINITY)
    await expect.poll(ask).toBe('local')
    await expect.poll(() => ask().then(() => states.at(-1))).toBe('open')
    front.loseReplies(0)
    await expect.poll(ask).toBe('redis')
    expect(states.at(-1)).toBe('closed')
  } finally {
    await limiter.close()
    await front.close()
    await redis.stop()
  }
})

describe('a call that missed its deadline is handed to waitUntil', () => {
  /** Returns the outcome of a request to a limited handler, and the work the runtime was told about. */
  async function ask(handle: (lifetime: { waitUntil(work: Promise<unknown>): void }) => Promise<Response>) {
    const works: Promise<unknown>[] = []
    const response = await handle({ waitUntil: work => void works.push(work) })
    return { status: response.status, works }
  }
  const request = () => new Request('http://localhost/')
  const options = (connection: ReturnType<typeof slowConnection>['connection']) => ({
    limiter: createLimiter({
      store: redisStore(connection, { deadlineMs: 5, logger: silent }),
      policies,
    }),
    policy: 'api' as const,
    subject: 'user:1' as const,
  })

  it.each([
    [
      'fetch',
      (connection: ReturnType<typeof slowConnection>['connection']) => {
        const limited = rateLimit(options(connection))(
          (_: Request, _env: object, _ctx: object) => new Response(),
        )
        return (ctx: object) => limited(request(), {}, ctx)
      },
    ],
    [
      'hono',
      (connection: ReturnType<typeof slowConnection>['connection']) => {
        const app = new Hono().use(limitHono(options(connection))).get('/', context => context.text('hello'))
        return async (ctx: object) => app.fetch(request(), {}, ctx as never)
      },
    ],
    [
      'next',
      (connection: ReturnType<typeof slowConnection>['connection']) => {
        const proxy = proxyOf({ ...options(connection), skip: () => false })
        return (event: object) => proxy({ nextUrl: {} } as never, event as never)
      },
    ],
  ])('a call of %s that missed its deadline is handed to waitUntil', async (_, limit) => {
    const { sent, connection } = slowConnection()
    const { status, works } = await ask(limit(connection))
    expect([status, works.length]).toEqual([200, 1])
    let over = false
    const work = works[0]?.then(() => {
      over = true
    })
    await new Promise(resolve => setTimeout(resolve, 5))
    expect(over).toBe(false)
    for (const { fail } of sent) fail(new Error('too late'))
    await work
    expect(over).toBe(true)
  })
})
