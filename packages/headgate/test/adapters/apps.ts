/** The app of the adapter contract, in every framework that has an adapter. */
import { createServer, type IncomingMessage, type RequestListener, type Server } from 'node:http'
import { serve } from '@hono/node-server'
import Router from '@koa/router'
import { All, Controller, Header, Module, Req } from '@nestjs/common'
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import express from 'express'
import express4 from 'express-4'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { NextRequest } from 'next/server.js'
import * as headgateExpress from '../../src/express.ts'
import * as headgateFastify from '../../src/fastify.ts'
import { type FetchOptions, rateLimit as limitFetch } from '../../src/fetch.ts'
import * as headgateHono from '../../src/hono.ts'
import * as headgateKoa from '../../src/koa.ts'
import { RateLimitFilter, RateLimitGuard } from '../../src/nest.ts'
import { type NextOptions, withRateLimit } from '../../src/next.ts'
import * as headgateNode from '../../src/node-http.ts'
import type { AppUnderTest, ServerUnderTest } from '../../src/testing/adapters/adapter-law.ts'
import type { AdapterUnderTest } from '../../src/testing/index.ts'
import { listening, textOf, underTest } from './listening.ts'

const ROUTES = ['/hello', '/items/:id']
const isRoute = (path: string): boolean => /^\/(?:hello|items\/[^/]+)$/.test(path)

function serveExpress(make: typeof express): AdapterUnderTest['serve'] {
  return ({ limits, limited, beginsEarly, handle }) => {
    const app = make()
    const limiters = limits.map(options => headgateExpress.rateLimit(options))
    if (beginsEarly) {
      app.use((_, res, next) => {
        res.flushHeaders()
        next()
      })
    }
    if (limited === 'app') for (const limiter of limiters) app.use(limiter)
    for (const route of ROUTES) {
      app.all(route, ...(limited === 'routes' ? limiters : []), (req, res, next) => {
        textOf(req).then(body => {
          if (!res.headersSent) res.setHeader('X-Own', 'yes')
          res.end(handle(body))
        }, next)
      })
    }
    return listening(createServer(app as RequestListener))
  }
}

async function serveFastify(app: AppUnderTest): Promise<ServerUnderTest> {
  const server = fastify()
  if (app.beginsEarly) {
    server.addHook('onRequest', (_, reply, done) => {
      reply.raw.flushHeaders()
      done()
    })
  }
  for (const options of app.limits) await server.register(headgateFastify.rateLimit(options))
  server.removeAllContentTypeParsers()
  server.addContentTypeParser('*', (_, payload, done) => done(null, payload))
  for (const url of ROUTES) {
    server.all(url, async (request, reply) => {
      const body = app.handle(await textOf(request.raw))
      if (!reply.raw.headersSent) return reply.header('X-Own', 'yes').send(body)
      reply.hijack()
      reply.raw.end(body)
    })
  }
  await server.listen({ port: 0, host: '127.0.0.1' })
  return underTest(server.server)
}

function serveKoa({ limits, limited, beginsEarly, handle }: AppUnderTest): Promise<ServerUnderTest> {
  const app = new Koa()
  const router = new Router()
  const limiters = limits.map(options => headgateKoa.rateLimit(options))
  if (beginsEarly) {
    app.use((ctx, next) => {
      ctx.status = 200
      ctx.flushHeaders()
      return next()
    })
  }
  if (limited === 'app') for (const limiter of limiters) app.use(limiter)
  for (const route of ROUTES) {
    router.all(route, ...(limited === 'routes' ? limiters : []), async ctx => {
      const body = handle(await textOf(ctx.req))
      ctx.set('X-Own', 'yes')
      ctx.body = body
    })
  }
  app.use(router.routes())
  return listening(createServer(app.callback()))
}

function serveHono({ limits, limited, handle }: AppUnderTest): Promise<ServerUnderTest> {
  const app = new Hono()
  const limiters = limits.map(options => headgateHono.rateLimit(options))
  if (limited === 'app') for (const limiter of limiters) app.use(limiter)
  for (const route of ROUTES) {
    if (limited === 'routes') for (const limiter of limiters) app.use(route, limiter)
    app.all(route, async context => context.text(handle(await context.req.text()), 200, { 'X-Own': 'yes' }))
  }
  return serveFetchOnNode(app.fetch)
}

function serveNode({ limits, beginsEarly, handle }: AppUnderTest): Promise<ServerUnderTest> {
  const hello: RequestListener = async (req, res) => {
    if (!isRoute(new URL(req.url ?? '', 'http://localhost').pathname)) return res.writeHead(404).end()
    // A client that has gone away gets no answer.
    const body = handle(await textOf(req).catch(() => ''))
    if (!res.headersSent) res.setHeader('X-Own', 'yes')
    return res.end(body)
  }
  const limited = limits.reduceRight((listener, options) => headgateNode.rateLimit(options)(listener), hello)
  const early: RequestListener = (req, res) => {
    res.flushHeaders()
    limited(req, res)
  }
  return listening(createServer(beginsEarly ? early : limited))
}

function serveNest(adapterOf: () => AbstractHttpAdapter): AdapterUnderTest['serve'] {
  return async ({ limits, handle }) => {
    class Routes {
      async answer(request: IncomingMessage | { raw: IncomingMessage }): Promise<string> {
        return handle(await textOf('raw' in request ? request.raw : request))
      }
    }
    class App {}
    const method = [Routes.prototype, 'answer', { value: Routes.prototype.answer }] as const
    for (const decorate of [All(ROUTES), Header('X-Own', 'yes')]) decorate(...method)
    Req()(Routes.prototype, 'answer', 0)
    Controller()(Routes)
    Module({ controllers: [Routes] })(App)
    const app = await NestFactory.create(App, adapterOf(), { logger: false, bodyParser: false })
    app.useGlobalGuards(...limits.map(options => new RateLimitGuard(options)))
    app.useGlobalFilters(new RateLimitFilter())
    await app.listen(0, '127.0.0.1')
    return underTest(app.getHttpServer())
  }
}

/** Creates a Nest adapter on Fastify that leaves bodies to the handler. */
function fastifyAdapter(): FastifyAdapter {
  const adapter = new FastifyAdapter()
  adapter.getInstance().addContentTypeParser('*', (_, payload, done) => done(null, payload))
  return adapter
}

function fetchHandler({ handle }: AppUnderTest): (request: Request) => Promise<Response> {
  return async request => {
    if (!isRoute(new URL(request.url).pathname)) return new Response(null, { status: 404 })
    return new Response(handle(await request.text()), { headers: { 'X-Own': 'yes' } })
  }
}

function serveFetch(app: AppUnderTest): Promise<ServerUnderTest> {
  return serveFetchOnNode(
    app.limits.reduceRight(
      (handler, options) => limitFetch(options as FetchOptions<string, string>)(handler),
      fetchHandler(app),
    ),
  )
}

/** Only handlers: Next.js builds its apps, so none can be created in a test. examples/next is one. */
function serveNext(app: AppUnderTest): Promise<ServerUnderTest> {
  const handler = app.limits.reduceRight<(request: NextRequest) => Promise<Response>>(
    (inner, options) => withRateLimit(inner, options as NextOptions<string, string>),
    fetchHandler(app),
  )
  return serveFetchOnNode(({ url, method, headers, body, signal }: Request) =>
    handler(new NextRequest(url, { method, headers, body, signal, duplex: 'half' })),
  )
}

function serveFetchOnNode(
  fetch: (request: Request, ...rest: never[]) => Response | Promise<Response>,
): Promise<ServerUnderTest> {
  return new Promise(resolve => {
    const server = serve(
      { fetch: fetch as (request: Request) => Promise<Response>, port: 0, hostname: '127.0.0.1' },
      () => resolve(underTest(server as Server)),
    )
  })
}

const onNode = { knowsPeer: true, canBeginEarly: true }
const ofGuards = { knowsPeer: true, canBeginEarly: false, knowsRoute: true, onRoutesOnly: true }

export const ADAPTERS: Readonly<Record<string, AdapterUnderTest>> = {
  'express 5': { ...onNode, knowsRoute: true, serve: serveExpress(express) },
  'express 4': { ...onNode, knowsRoute: true, serve: serveExpress(express4) },
  fastify: { ...onNode, knowsRoute: true, serve: serveFastify },
  koa: { ...onNode, knowsRoute: true, serve: serveKoa },
  hono: { knowsPeer: true, canBeginEarly: false, knowsRoute: true, serve: serveHono },
  'nest on express': { ...ofGuards, serve: serveNest(() => new ExpressAdapter()) },
  'nest on fastify': { ...ofGuards, serve: serveNest(fastifyAdapter) },
  'node:http': { ...onNode, knowsRoute: false, serve: serveNode },
  fetch: { knowsPeer: false, canBeginEarly: false, knowsRoute: false, serve: serveFetch },
  next: { knowsPeer: false, canBeginEarly: false, knowsRoute: false, serve: serveNext },
}
