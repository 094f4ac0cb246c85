/** A limit in one line, in every framework, and the decision where a handler needs it. */
import { createServer, type RequestListener } from 'node:http'
import { serve } from '@hono/node-server'
import Router from '@koa/router'
import { Controller, Get, Module, Req } from '@nestjs/common'
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import { initTRPC, TRPCError } from '@trpc/server'
import express from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { NextRequest } from 'next/server.js'
import { afterEach, describe, expect, expectTypeOf, it } from 'vitest'
import { isHeadgateError } from '../../src/errors/headgate-error.ts'
import { type ExpressOptions, rateLimit as limitExpress } from '../../src/express.ts'
import { rateLimit as limitFastify } from '../../src/fastify.ts'
import { rateLimit as limitFetch } from '../../src/fetch.ts'
import { rateLimit as limitHono } from '../../src/hono.ts'
import { createLimiter, type Decision, memoryStore, type Store, slidingWindowLog } from '../../src/index.ts'
import { rateLimit as limitKoa } from '../../src/koa.ts'
import { RateLimit, RateLimitModule } from '../../src/nest.ts'
import { rateLimit as limitNext, withRateLimit } from '../../src/next.ts'
import { rateLimit as limitNode } from '../../src/node-http.ts'
import { rateLimit as limitTrpc } from '../../src/trpc.ts'
import { keepLines } from '../support/kept-lines.ts'
import { configOf, perMinute } from '../support/rule-config.ts'
import { listening, underTest } from './listening.ts'

const ONE_LINE = { limit: 3, window: '1m' } as const
const skip = (of: { readonly url?: string | undefined }) => of.url?.endsWith('/free') === true

interface Running {
  readonly url: string
  close(): Promise<void>
}
const running: Running[] = []
afterEach(async () => {
  for (const server of running.splice(0)) await server.close()
})
const start = async (server: Promise<Running>): Promise<string> => {
  running.push(await server)
  return (await server).url
}

/** Each answers with what is left, as the handler sees it, or null. */
const APPS: Readonly<Record<string, () => Promise<Running>>> = {
  express() {
    const app = express().use(limitExpress({ ...ONE_LINE, skip }))
    app.use((req, res) => void res.json({ remaining: req.rateLimit?.remaining ?? null }))
    return listening(createServer(app as RequestListener))
  },
  async fastify() {
    const app = fastify()
    await app.register(limitFastify({ ...ONE_LINE, skip }))
    app.get('/*', async request => ({ remaining: request.rateLimit?.remaining ?? null }))
    await app.listen({ port: 0, host: '127.0.0.1' })
    return underTest(app.server)
  },
  koa() {
    const app = new Koa().use(limitKoa({ ...ONE_LINE, skip }))
    app.use(ctx => {
      ctx.body = { remaining: ctx.state.rateLimit?.remaining ?? null }
    })
    return listening(createServer(app.callback()))
  },
  hono() {
    const app = new Hono()
    app.use(limitHono({ ...ONE_LINE, skip: ({ req }) => skip(req) }))
    app.get('/*', c => c.json({ remaining: c.get('rateLimit')?.remaining ?? null }))
    return new Promise(resolve => {
      const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () =>
        resolve(underTest(server as never)),
      )
    })
  },
  'node:http'() {
    const limited = limitNode({ ...ONE_LINE, skip })
    return listening(
      createServer(
        limited((req, res) => res.end(JSON.stringify({ remaining: req.rateLimit?.remaining ?? null }))),
      ),
    )
  },
  'nest on express': () => serveNest(new ExpressAdapter()),
  'nest on fastify': () => serveNest(new FastifyAdapter()),
}

async function serveNest(adapter: AbstractHttpAdapter): Promise<Running> {
  class Limited {
    limited(request: { rateLimit?: Decision }) {
      return { remaining: request.rateLimit?.remaining ?? null }
    }
    free(request: { rateLimit?: Decision }) {
      return this.limited(request)
    }
  }
  const decorate = (name: 'limited' | 'free', path: string) => {
    Get(path)(Limited.prototype, name, { value: Limited.prototype[name] })
    Req()(Limited.prototype, name, 0)
  }
  decorate('limited', '/')
  decorate('free', '/free')
  RateLimit(ONE_LINE)(Limited.prototype, 'limited', { value: Limited.prototype.limited })
  Controller()(Limited)
  class App {}
  // No module of ours: the decorator is all there is.
  Module({ controllers: [Limited] })(App)
  const app = await NestFactory.create(App, adapter, { logger: false })
  await app.listen(0, '127.0.0.1')
  return underTest(app.getHttpServer())
}

describe.each(Object.entries(APPS))('in %s', (_, serveApp) => {
  it('a limit in one line admits as many as it says, and tells the handler what is left', async () => {
    const url = await start(serveApp())
    for (const remaining of [2, 1, 0]) expect(await (await fetch(url)).json()).toEqual({ remaining })
    const denied = await fetch(url)
    expect([denied.status, denied.headers.get('retry-after')]).toEqual([429, '60'])
    expect([denied.headers.get('x-ratelimit-limit'), denied.headers.get('x-ratelimit-policy')]).toEqual([
      '3',
      'default',
    ])
  })

  it('a request that is not limited has no decision', async () => {
    const url = await start(serveApp())
    for (let time = 0; time < 5; time++)
      expect(await (await fetch(`${url}/free`)).json()).toEqual({ remaining: null })
  })
})

const statusesOf = async (times: number, ask: () => Response | Promise<Response>): Promise<number[]> => {
  const statuses: number[] = []
  for (let time = 0; time < times; time++) statuses.push((await ask()).status)
  return statuses
}

it('a limit in one line limits fetch handlers and Next.js, which need a subject', async () => {
  const hello = () => new Response('hello')
  const one = { ...ONE_LINE, subject: () => 'user:1' }
  const ofNext = [
    limitNext(one),
    withRateLimit(hello, one),
    withRateLimit(hello, { ...one, tier: 'per-endpoint' }),
  ]
  for (const limited of [limitFetch(one)(hello), ...ofNext])
    expect(await statusesOf(4, () => limited(new NextRequest('http://localhost/')))).toEqual([
      200, 200, 200, 429,
    ])
})

it('a limit in one line limits procedures of tRPC', async () => {
  const t = initTRPC.create()
  const limited = t.procedure.use(limitTrpc({ ...ONE_LINE, subject: 'user:1' }))
  const caller = t.createCallerFactory(t.router({ hello: limited.query(() => 'hello') }))({})
  for (let time = 0; time < 3; time++) expect(await caller.hello()).toBe('hello')
  await expect(caller.hello()).rejects.toThrow(TRPCError)
})

it('a limit above a thousand is counted, not logged', async () => {
  const url = await start(
    listening(
      createServer(limitNode({ limit: 1_001, window: '1h', headers: 'ietf' })((_, res) => res.end())),
    ),
  )
  expect((await fetch(url)).headers.get('ratelimit-policy')).toBe('"default.counter-1h";q=1001;w=3600')
})

describe('where budgets are kept', () => {
  async function serveRoutes(
    limits: Readonly<Record<string, object>>,
  ): Promise<(path: string) => Promise<number>> {
    const app = express()
    for (const [path, options] of Object.entries(limits))
      app.get(
        path,
        limitExpress(options as ExpressOptions<string, string>),
        (_, res) => void res.send('hello'),
      )
    const url = await start(listening(createServer(app as RequestListener)))
    return async path => (await fetch(url + path)).status
  }
  const one = { limit: 1, window: '1m' } as const

  it('in memory, each call has a budget of its own', async () => {
    const ask = await serveRoutes({ '/a': one, '/b': one })
    expect([await ask('/a'), await ask('/a'), await ask('/b')]).toEqual([200, 429, 200])
  })

  it('with a store, each route has a budget of its own, which is that of the route in another process', async () => {
    const store = memoryStore()
    const ask = await serveRoutes({ '/a': { ...one, store }, '/b': { ...one, store } })
    const other = await serveRoutes({ '/a': { ...one, store } })
    expect([await ask('/a'), await other('/a'), await ask('/b')]).toEqual([200, 429, 200])
  })

  it('with a store, limits of one name share a budget, and others do not', async () => {
    const store = memoryStore()
    const [shared, other] = [
      { ...one, store, name: 'shared' },
      { ...one, store, name: 'other' },
    ]
    const ask = await serveRoutes({ '/a': shared, '/b': shared, '/c': other })
    expect([await ask('/a'), await ask('/b'), await ask('/c')]).toEqual([200, 429, 200])
  })

  it('limits of one name with different numbers are an error, in one store', () => {
    const store = memoryStore()
    const make = (limit: number, name: string | undefined, of: Store = store) =>
      limitExpress({ limit, window: '1m', store: of, ...(name && { name }) })
    make(5, 'login')
    make(5, 'login')
    make(6, 'login', memoryStore())
    make(7, 'signup')
    expect(errorOf(() => make(6, 'login'))).toEqual([
      'ERR_HEADGATE_INVALID_OPTION',
      'name',
      'another one, because "login" is 5 per 1m in the same store',
      '"login" for 6 per 1m',
    ])
    make(8, undefined)
    expect(errorOf(() => make(9, undefined))?.[1]).toBe('name')
  })

  it('a route of Fastify has its own limit in one line, whatever the plugin has', async () => {
    const store = memoryStore()
    const app = fastify()
    await app.register(limitFastify({ limit: 2, window: '1m', store }))
    app.get('/plain', async () => 'hello')
    app.get('/strict', { config: { rateLimit: { limit: 1, window: '1m', store } } }, async () => 'hello')
    app.get('/other', { config: { rateLimit: { limit: 3, window: '1m', store } } }, async () => 'hello')
    await app.listen({ port: 0, host: '127.0.0.1' })
    const url = await start(Promise.resolve(underTest(app.server)))
    const ask = (path: string, times: number) => statusesOf(times, () => fetch(url + path))
    expect(await ask('/strict', 2)).toEqual([200, 429])
    expect(await ask('/other', 4)).toEqual([200, 200, 200, 429])
    expect(await ask('/plain', 3)).toEqual([200, 200, 429])
  })

  it('Koa and Hono know the route that a limit was put on', async () => {
    const store = memoryStore()
    const router = new Router()
    for (const path of ['/a', '/b'])
      router.get(path, limitKoa({ ...one, store }), ctx => {
        ctx.status = 200
      })
    const koa = await start(listening(createServer(new Koa().use(router.routes()).callback())))
    const app = new Hono()
    const subject = () => 'user:1'
    app.use(limitHono({ limit: 9, window: '2m', store: memoryStore(), subject }))
    const honoStore = memoryStore()
    app.get('/a', limitHono({ ...one, store: honoStore, subject }), c => c.text('hello'))
    app.get('/b', limitHono({ ...one, store: honoStore, subject }), c => c.text('hello'))
    for (const ask of [(path: string) => fetch(koa + path), (path: string) => app.request(path)]) {
      const statuses = [await ask('/a'), await ask('/a'), await ask('/b')].map(({ status }) => status)
      expect(statuses).toEqual([200, 429, 200])
    }
  })
})

it("a decorator's limit in one line takes the place of the module's, and is charged once", async () => {
  class Routes {
    strict() {}
    plain() {}
  }
  for (const name of ['strict', 'plain'] as const)
    Get(name)(Routes.prototype, name, { value: Routes.prototype[name] })
  RateLimit({ limit: 2, window: '1m' })(Routes.prototype, 'strict', { value: Routes.prototype.strict })
  Controller()(Routes)
  class App {}
  Module({ imports: [RateLimitModule.forRoot({ limit: 1, window: '1m' })], controllers: [Routes] })(App)
  const app = await NestFactory.create(App, { logger: false })
  await app.listen(0, '127.0.0.1')
  const url = await start(Promise.resolve(underTest(app.getHttpServer())))
  expect(await statusesOf(3, () => fetch(`${url}/strict`))).toEqual([200, 200, 429])
  expect(await statusesOf(2, () => fetch(`${url}/plain`))).toEqual([200, 429])
})

it('options of other libraries lead to ours', () => {
  const ours = { keyGenerator: 'subject', windowMs: 'window', max: 'limit', handler: 'body', message: 'body' }
  for (const [theirs, suggestion] of Object.entries(ours)) {
    const error = caught(() => limitExpress({ [theirs]: 1 } as never))
    expect(isHeadgateError(error) && [error.field, error.suggestion]).toEqual([theirs, suggestion])
    expect(String(error)).toContain(`did you mean "${suggestion}"?`)
  }
})

it('a policy may be a function of the request, and one that returns none of them frees nobody', async () => {
  const limit = (limit: number) => slidingWindowLog({ limit, window: '1m' })
  const limiter = createLimiter({ policies: { few: limit(1), many: limit(3) } })
  const { logger, lines } = keepLines()
  const limited = limitFetch({
    limiter,
    logger,
    subject: 'user:1',
    policy: request => request.headers.get('x-policy') as 'few' | 'many',
  })(() => new Response('hello'))
  const ask = (policy: string) =>
    limited(new Request('http://localhost/', { headers: { 'x-policy': policy } }))
  expect(await statusesOf(2, () => ask('nonsense'))).toEqual([200, 429])
  expect(await statusesOf(1, () => ask('few'))).toEqual([429])
  expect(await statusesOf(4, () => ask('many'))).toEqual([200, 200, 200, 429])
  expect(lines).toEqual([expect.stringContaining('WARN_HEADGATE_UNUSABLE_VALUE: policy: ')])
})

it('a limiter of policies needs one of them, and a limiter of rules none, by type and at run time', () => {
  const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 1, window: '1m' }) } })
  const ruled = createLimiter({
    config: configOf({ policies: { api: perMinute(1) }, default: { policy: 'api' } }),
  })
  // @ts-expect-error which policy?
  expect(errorOf(() => limitExpress({ limiter }))?.[1]).toBe('policy')
  // @ts-expect-error a misspelt policy
  expect(caught(() => limitExpress({ limiter, policy: 'apis' }))).toMatchObject({ suggestion: 'api' })
  // @ts-expect-error a limiter, or a limit
  expect(errorOf(() => limitExpress({ limiter, policy: 'api', limit: 1, window: '1m' }))?.[1]).toBe('limiter')
  // @ts-expect-error a window is missing
  expect(errorOf(() => limitExpress({ limit: 1 }))?.[1]).toBe('window')
  limitExpress({ limiter: ruled })
  limitExpress({ limiter: ruled, policy: 'api' })
  expectTypeOf(limitExpress).parameter(0).toExtend<ExpressOptions<string, string>>()
})

function caught(work: () => unknown): unknown {
  try {
    work()
  } catch (error) {
    return error
  }
  return undefined
}

function errorOf(work: () => unknown): unknown[] | null {
  const error = caught(work)
  return isHeadgateError(error) ? [error.code, error.field, error.expected, error.got] : null
}

it.each([
  [{ limit: 1, windw: '1m' }, 'window'],
  [{ limt: 1, window: '1m' }, 'limit'],
])('a misspelt number of a limit in one line is named: %j', (options, suggestion) => {
  const make = () => limitExpress(options as object as ExpressOptions<string, string>)
  expect(make).toThrow(expect.objectContaining({ suggestion }))
})
