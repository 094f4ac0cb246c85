import fastify from 'fastify'
import { expect, it } from 'vitest'
import { rateLimit } from '../../src/fastify.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { slidingWindowLog } from '../../src/policy/limits.ts'

const setUp = () =>
  createLimiter({
    policies: {
      api: slidingWindowLog({ limit: 2, window: '1m' }),
      login: slidingWindowLog({ limit: 1, window: '1m' }),
    },
  })

it('a route is limited by what its config says, and not at all where that is false', async () => {
  const app = fastify()
  await app.register(rateLimit({ limiter: setUp(), policy: 'api' }))
  app.get('/', async () => 'hello')
  app.post('/login', { config: { rateLimit: { policy: 'login', headers: 'ietf' } } }, async () => 'hello')
  app.get('/health', { config: { rateLimit: false } }, async () => 'well')
  const ask = async (method: 'GET' | 'POST', url: string) => (await app.inject({ method, url })).statusCode
  const login = await app.inject({ method: 'POST', url: '/login' })
  expect([login.statusCode, login.headers.ratelimit]).toEqual([200, expect.stringContaining('r=0')])
  expect(await ask('POST', '/login')).toBe(429)
  expect([await ask('GET', '/'), await ask('GET', '/'), await ask('GET', '/')]).toEqual([200, 200, 429])
  for (let time = 0; time < 5; time++) expect(await ask('GET', '/health')).toBe(200)
  await app.close()
})

it('the plugin limits the routes of contexts below, and those made before it was loaded', async () => {
  const app = fastify()
  app.register(rateLimit({ limiter: setUp(), policy: 'api' }))
  app.get('/before', { config: { rateLimit: { policy: 'login' } } }, async () => 'hello')
  app.register(async below => void below.get('/below', async () => 'hello'))
  const ask = async (url: string) => (await app.inject({ url })).statusCode
  expect([await ask('/before'), await ask('/before')]).toEqual([200, 429])
  expect([await ask('/below'), await ask('/below'), await ask('/below')]).toEqual([200, 200, 429])
  await app.close()
})

it('a route whose config is wrong is refused when it is made', async () => {
  const app = fastify()
  await app.register(rateLimit({ limiter: setUp(), policy: 'api' }))
  expect(() => app.get('/', { config: { rateLimit: { policy: 'lgin' } } }, async () => 'hello')).toThrow(
    /^policy: expected one of api, login/,
  )
  await app.close()
})

it('a route is limited by the plugin where its config was wrong and could not be refused', async () => {
  const app = fastify()
  app.register(rateLimit({ limiter: setUp(), policy: 'api' }))
  app.get('/before', { config: { rateLimit: { policy: 'lgin' } } }, async () => 'hello')
  const ask = async () => (await app.inject({ url: '/before' })).statusCode
  expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429])
  await app.close()
})
