/** Who is charged behind a proxy, in every framework that has a setting for proxies, and in those that have none. */
import { createServer, type RequestListener } from 'node:http'
import { serve } from '@hono/node-server'
import { Controller, Get, Module } from '@nestjs/common'
import { type AbstractHttpAdapter, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import express from 'express'
import express4 from 'express-4'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { describe, expect, it } from 'vitest'
import { rateLimit as limitExpress } from '../../src/express.ts'
import { rateLimit as limitFastify } from '../../src/fastify.ts'
import { rateLimit as limitHono } from '../../src/hono.ts'
import type { TrustedProxies } from '../../src/identify.ts'
import { createLimiter, slidingWindowLog } from '../../src/index.ts'
import { rateLimit as limitKoa } from '../../src/koa.ts'
import { RateLimitModule } from '../../src/nest.ts'
import { rateLimit as limitNode } from '../../src/node-http.ts'
import type { ServerUnderTest } from '../../src/testing/adapters/adapter-law.ts'
import { keepLines } from '../support/kept-lines.ts'
import { configOf, perMinute } from '../support/rule-config.ts'
import { listening, underTest } from './listening.ts'

const LIMIT = 3
const CLIENTS = ['203.0.113.1', '203.0.113.2', '203.0.113.3', '203.0.113.4', '203.0.113.5']
/** Where this test, which is the proxy, connects from. */
const PEER = '127.0.0.0/8'

type Limits = ReturnType<typeof limitsOf>['options']
/** Serves an app whose framework has `setting`, and limits it. */
type Serve = (setting: unknown, options: Limits) => Promise<ServerUnderTest>

function limitsOf(trustedProxies?: TrustedProxies, isByRules = false) {
  const { logger, lines } = keepLines()
  const policies = { api: slidingWindowLog({ limit: LIMIT, window: '1h' }) }
  const limiter = isByRules
    ? createLimiter({ config: configOf({ policies: { api: perMinute(LIMIT) }, default: { policy: 'api' } }) })
    : createLimiter({ policies })
  const policy = isByRules ? {} : { policy: 'api' as const }
  return {
    lines,
    options: { limiter, logger, ...policy, ...(trustedProxies && { trustedProxies }) } as object,
  }
}

function serveExpress(make: typeof express): Serve {
  return (setting, options) => {
    const app = make()
    if (setting !== undefined) app.set('trust proxy', setting)
    app.use(limitExpress(options as never))
    app.get('/', (_req, res) => void res.send('hello'))
    return listening(createServer(app as RequestListener))
  }
}

const serveFastify: Serve = async (setting, options) => {
  const app = fastify(setting === undefined ? {} : { trustProxy: setting as string[] })
  await app.register(limitFastify(options as never))
  // A context of its own, whose requests have a prototype of their own.
  await app.register(async below => void below.get('/', async () => 'hello'))
  await app.listen({ port: 0, host: '127.0.0.1' })
  return underTest(app.server)
}

const serveKoa: Serve = (setting, options) => {
  const app = new Koa(setting as object)
  app.use(limitKoa(options as never))
  app.use(ctx => {
    ctx.body = 'hello'
  })
  return listening(createServer(app.callback()))
}

const serveHono: Serve = (_, options) => {
  const app = new Hono()
  app.use(limitHono(options as never))
  app.get('/', c => c.text('hello'))
  return new Promise(resolve => {
    const server = serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, () =>
      resolve(underTest(server as never)),
    )
  })
}

const serveNode: Serve = (_, options) =>
  listening(createServer(limitNode(options as never)((_req, res) => res.end('hello'))))

function serveNest(adapterOf: (setting: unknown) => AbstractHttpAdapter): Serve {
  return async (setting, options) => {
    class Hello {
      answer() {
        return 'hello'
      }
    }
    Get()(Hello.prototype, 'answer', { value: Hello.prototype.answer })
    Controller()(Hello)
    class App {}
    Module({ imports: [RateLimitModule.forRoot(options as never)], controllers: [Hello] })(App)
    const app = await NestFactory.create(App, adapterOf(setting), { logger: false })
    await app.listen(0, '127.0.0.1')
    return underTest(app.getHttpServer())
  }
}

const nestOnExpress = serveNest(setting => {
  const app = express()
  if (setting !== undefined) app.set('trust proxy', setting)
  return new ExpressAdapter(app)
})
const nestOnFastify = serveNest(
  setting => new FastifyAdapter(setting === undefined ? {} : { trustProxy: setting as string[] }),
)

/** Asks once with each list of headers; returns how many were admitted. */
async function admitted(
  serveApp: () => Promise<ServerUnderTest>,
  asked: readonly Record<string, string>[],
): Promise<number> {
  const server = await serveApp()
  try {
    let passed = 0
    for (const headers of asked) if ((await fetch(server.url, { headers })).status === 200) passed++
    return passed
  } finally {
    await server.close()
  }
}

const from = (forwarded: string): Record<string, string> => ({ 'x-forwarded-for': forwarded })
const fourTimesEach = CLIENTS.flatMap(client => Array.from({ length: LIMIT + 1 }, () => from(client)))

const EXPRESS: readonly (readonly [string, Serve])[] = [
  ['Express 5', serveExpress(express)],
  ['Express 4', serveExpress(express4 as typeof express)],
  ['Nest on Express', nestOnExpress],
]
const FASTIFY: readonly (readonly [string, Serve])[] = [
  ['Fastify', serveFastify],
  ['Nest on Fastify', nestOnFastify],
]
const ALL = [
  ...EXPRESS,
  ...FASTIFY,
  ['Koa', serveKoa],
  ['Hono', serveHono],
  ['node:http', serveNode],
] as const

/** Settings that say which proxies to trust. */
const BOUNDED: readonly (readonly [string, unknown, Serve])[] = [
  ...EXPRESS.flatMap(([name, serveApp]) =>
    [PEER, ['loopback', '10.0.0.0/8'], 1, (_: string, hop: number) => hop < 1].map(
      setting => [name, setting, serveApp] as const,
    ),
  ),
  ...FASTIFY.flatMap(([name, serveApp]) =>
    ['127.0.0.1', [PEER], '127.0.0.1, 10.0.0.0/8', (address: string) => address === '127.0.0.1'].map(
      setting => [name, setting, serveApp] as const,
    ),
  ),
  ['Koa', { proxy: true, maxIpsCount: 1 }, serveKoa],
]

/** Settings that believe whatever a client writes. */
const UNBOUNDED: readonly (readonly [string, unknown, Serve])[] = [
  ...EXPRESS.flatMap(([name, serveApp]) =>
    [true, ['0.0.0.0/1', '128.0.0.0/1'], () => true].map(setting => [name, setting, serveApp] as const),
  ),
  ...FASTIFY.flatMap(([name, serveApp]) =>
    [true, ['0.0.0.0/1', '128.0.0.0/1']].map(setting => [name, setting, serveApp] as const),
  ),
  ['Koa', { proxy: true }, serveKoa],
  ['Koa', { proxy: true, maxIpsCount: 1, proxyIpHeader: 'X-Real-IP' }, serveKoa],
]

describe('with nothing set', () => {
  it.each(ALL)('%s charges one caller whatever the headers claim, and warns once', async (_, serveApp) => {
    const names = [
      'x-forwarded-for',
      'forwarded',
      'x-real-ip',
      'cf-connecting-ip',
      'true-client-ip',
      'x-client-ip',
    ]
    const asked = Array.from({ length: 120 }, (_, time) => {
      const name = names[time % names.length] as string
      return { [name]: name === 'forwarded' ? `for=198.51.100.${time}` : `198.51.100.${time}` }
    })
    const { lines, options } = limitsOf()
    expect(await admitted(() => serveApp(undefined, options), asked)).toBe(LIMIT)
    expect(lines).toEqual([expect.stringContaining('WARN_HEADGATE_PROXY_NOT_TRUSTED: trustedProxies: ')])
  })

  it.each(ALL)('%s does not warn where no header names a client', async (_, serveApp) => {
    const { lines, options } = limitsOf()
    expect(await admitted(() => serveApp(undefined, options), [{}, {}, {}, {}])).toBe(LIMIT)
    expect(lines).toEqual([])
  })
})

describe("with a framework's setting that says which proxies to trust", () => {
  it.each(BOUNDED)('%s with %s tells clients apart', async (_name, setting, serveApp) => {
    const { lines, options } = limitsOf()
    expect(await admitted(() => serveApp(setting, options), fourTimesEach)).toBe(CLIENTS.length * LIMIT)
    expect(lines).toEqual([])
  })

  it.each(BOUNDED)(
    '%s with %s believes nothing left of what the proxy wrote',
    async (_name, setting, serveApp) => {
      const right = ['203.0.113.9', '203.0.113.9:4711', '203.0.113.9', '[::ffff:203.0.113.9]:80']
      const forged = Array.from({ length: 40 }, (_, time) =>
        from(`198.51.100.${time}, ${'1.1.1.1, '.repeat(time % 3)}${right[time % 4]}`),
      )
      expect(await admitted(() => serveApp(setting, limitsOf().options), forged)).toBe(LIMIT)
    },
  )

  it.each(BOUNDED)(
    '%s with %s falls back to the proxy where it cannot read the header',
    async (_name, setting, serveApp) => {
      const garbage = ['unknown', '203.0.113.9, _hidden', '0177.0.0.1', '1.2.3.4.5'].map(from)
      const own = [{}, {}]
      expect(await admitted(() => serveApp(setting, limitsOf().options), [...garbage, ...own])).toBe(LIMIT)
    },
  )

  it.each(EXPRESS)('%s does the same for the callers of a policy file', async (_, serveApp) => {
    const { lines, options } = limitsOf(undefined, true)
    expect(await admitted(() => serveApp(PEER, options), fourTimesEach)).toBe(CLIENTS.length * LIMIT)
    expect(lines).toEqual([])
  })
})

describe("with a framework's setting that believes everybody", () => {
  it.each(UNBOUNDED)(
    '%s with %s charges the connection, and says what to write',
    async (_name, setting, serveApp) => {
      const { lines, options } = limitsOf()
      expect(await admitted(() => serveApp(setting, options), fourTimesEach)).toBe(LIMIT)
      expect(lines).toEqual([
        expect.stringMatching(/WARN_HEADGATE_TRUSTS_EVERYBODY: .*trustedProxies: \['10\.0\.0\.0\/8'\]/),
      ])
    },
  )

  it.each(UNBOUNDED)('%s with %s gives way to trustedProxies', async (_name, setting, serveApp) => {
    const { lines, options } = limitsOf([PEER])
    expect(await admitted(() => serveApp(setting, options), fourTimesEach)).toBe(CLIENTS.length * LIMIT)
    expect(lines).toEqual([])
  })
})

it.each(FASTIFY)(
  '%s, which ignores a number of hops, is not believed either, and warns',
  async (_, serveApp) => {
    const { lines, options } = limitsOf()
    expect(await admitted(() => serveApp(1, options), fourTimesEach)).toBe(LIMIT)
    expect(lines).toEqual([expect.stringContaining('WARN_HEADGATE_PROXY_NOT_TRUSTED')])
  },
)

it('an empty list of trustedProxies trusts nobody, whatever the framework does, and does not warn', async () => {
  const { lines, options } = limitsOf([])
  expect(await admitted(() => serveExpress(express)(PEER, options), fourTimesEach)).toBe(LIMIT)
  expect(lines).toEqual([])
})
