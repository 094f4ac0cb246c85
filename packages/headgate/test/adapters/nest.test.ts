import {
  type ArgumentsHost,
  Catch,
  Controller,
  type ExceptionFilter,
  Get,
  Module,
  type Type,
  UseFilters,
} from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { FastifyRequest } from 'fastify'
import { describe, expect, it, onTestFinished } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { defineConfig } from '../../src/config.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { RateLimit, RateLimitException, RateLimitModule } from '../../src/nest.ts'
import { perMinute } from '../support/rule-config.ts'
import { startNestExample } from './nest-example.ts'

const setUp = () =>
  createLimiter({
    policies: {
      api: slidingWindowLog({ limit: 2, window: '1m' }),
      login: slidingWindowLog({ limit: 1, window: '1m' }),
    },
  })

/**
 * Creates a controller with GET routes that have these limits. Decorators are functions, and are called as such
 * here.
 */
function controllerOf(own: Readonly<Record<string, Parameters<typeof RateLimit>[0] | undefined>>): Type {
  class Routes {}
  Controller()(Routes)
  for (const [name, limit] of Object.entries(own)) {
    const descriptor = { value: () => 'hello', configurable: true, writable: true, enumerable: false }
    Object.defineProperty(Routes.prototype, name, descriptor)
    Get(name)(Routes.prototype, name, descriptor)
    if (limit !== undefined) RateLimit(limit)(Routes.prototype, name, descriptor)
  }
  return Routes
}

async function start(limits: ReturnType<typeof RateLimitModule.forRoot>, controller: Type) {
  class App {}
  Module({ imports: [limits], controllers: [controller] })(App)
  const app = await NestFactory.create(App, new FastifyAdapter(), { logger: false, abortOnError: false })
  onTestFinished(() => app.close())
  await app.listen(0, '127.0.0.1')
  const url = await app.getUrl()
  return async (path: string, user = 'nobody') =>
    (await fetch(`${url}/${path}`, { headers: { 'x-user': user } })).status
}

it('a route is limited by what its decorator says, and not at all where that is false', async () => {
  const routes = controllerOf({ hello: undefined, login: { policy: 'login' }, health: false })
  const ask = await start(RateLimitModule.forRoot({ limiter: setUp(), policy: 'api' }), routes)
  expect([await ask('login'), await ask('login')]).toEqual([200, 429])
  expect([await ask('hello'), await ask('hello'), await ask('hello')]).toEqual([200, 200, 429])
  expect([await ask('health'), await ask('health'), await ask('health')]).toEqual([200, 200, 200])
})

it('the guard takes what a controller says for its routes, options from a factory, and the rules of a limiter', async () => {
  const routes = controllerOf({ hello: undefined, login: false })
  RateLimit({ policy: 'login' })(routes)
  const useFactory = async () => ({ limiter: setUp(), policy: 'api' }) as const
  const ask = await start(RateLimitModule.forRootAsync({ useFactory }), routes)
  expect([await ask('hello'), await ask('hello'), await ask('login')]).toEqual([200, 429, 200])
  const config = defineConfig({
    policies: { login: perMinute(1) },
    rules: [{ match: { path: '/login' }, policy: 'login' }],
  })
  const ruled = createLimiter({ config })
  onTestFinished(() => ruled.close())
  const askRuled = await start(
    RateLimitModule.forRoot({ limiter: ruled }),
    controllerOf({ hello: undefined, login: undefined }),
  )
  expect([
    await askRuled('hello'),
    await askRuled('login'),
    await askRuled('login'),
    await askRuled('hello'),
  ]).toEqual([200, 200, 429, 200])
})

it('the module makes its options of what Nest injects, and finds who is asking in the context', async () => {
  class Limits {}
  Module({ providers: [{ provide: 'LIMITER', useFactory: setUp }], exports: ['LIMITER'] })(Limits)
  const limits = RateLimitModule.forRootAsync({
    imports: [Limits],
    inject: ['LIMITER'],
    useFactory: (limiter: ReturnType<typeof setUp>) => ({
      limiter,
      policy: 'login',
      subject: context => `user:${context.switchToHttp().getRequest<FastifyRequest>().headers['x-user']}`,
    }),
  })
  const ask = await start(limits, controllerOf({ hello: undefined }))
  expect([await ask('hello', '1'), await ask('hello', '1'), await ask('hello', '2')]).toEqual([200, 429, 200])
})

it('a filter of the controller that catches a rejection gets it', async () => {
  class OwnFilter implements ExceptionFilter<RateLimitException> {
    catch({ rejection }: RateLimitException, host: ArgumentsHost): void {
      host
        .switchToHttp()
        .getResponse()
        .code(rejection.status === 429 ? 418 : 500)
        .send('short and stout')
    }
  }
  Catch(RateLimitException)(OwnFilter)
  const routes = controllerOf({ hello: undefined })
  UseFilters(OwnFilter)(routes)
  const ask = await start(RateLimitModule.forRoot({ limiter: setUp(), policy: 'login' }), routes)
  expect([await ask('hello'), await ask('hello')]).toEqual([200, 418])
})

it('an app with wrong options does not start: the module’s, or a decorator’s', async () => {
  const limiter = setUp()
  const wrong = RateLimitModule.forRoot({ limiter, policy: 'apo' as 'api' })
  await expect(start(wrong, controllerOf({}))).rejects.toThrow(/^policy: expected one of api, login/)
  const module = RateLimitModule.forRoot({ limiter, policy: 'api' })
  await expect(start(module, controllerOf({ hello: { policy: 'lgin' } }))).rejects.toThrow(
    /^policy: expected one of api, login/,
  )
})

describe.each(['12', '11'] as const)('the example on NestJS %s', version => {
  it.each(['express', 'fastify'])(
    'the NestJS example on %s lets five requests of an address pass, and two logins',
    async platform => {
      const { url, close } = await startNestExample(version, platform)
      onTestFinished(close)
      const ask = async (method: string, path: string, times: number): Promise<number[]> => {
        const statuses: number[] = []
        for (let time = 0; time < times; time++) statuses.push((await fetch(url + path, { method })).status)
        return statuses
      }
      expect(await ask('POST', '/login', 3)).toEqual([200, 200, 429])
      expect(await ask('GET', '/', 6)).toEqual([200, 200, 200, 200, 200, 429])
      expect(await ask('GET', '/health', 7)).toEqual(Array(7).fill(200))
      const denied = await fetch(url)
      expect([
        denied.headers.get('content-type')?.split(';')[0],
        denied.headers.get('x-ratelimit-limit'),
      ]).toEqual(['application/problem+json', '5'])
      expect(await denied.json()).toMatchObject({ status: 429, policy: 'api' })
    },
  )
})
