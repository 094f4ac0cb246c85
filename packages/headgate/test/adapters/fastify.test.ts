import { type AddressInfo, connect } from 'node:net'
import fastify from 'fastify'
import { expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { RateLimitError, rateLimit } from '../../src/fastify.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'

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

it('a route whose config is wrong is rejected when it is made', async () => {
  const app = fastify()
  await app.register(rateLimit({ limiter: setUp(), policy: 'api' }))
  expect(() => app.get('/', { config: { rateLimit: { policy: 'lgin' } } }, async () => 'hello')).toThrow(
    /^policy: expected one of api, login/,
  )
  await app.close()
})

it('a route is limited by the plugin where its config was wrong and could not be rejected', async () => {
  const app = fastify()
  app.register(rateLimit({ limiter: setUp(), policy: 'api' }))
  app.get('/before', { config: { rateLimit: { policy: 'lgin' } } }, async () => 'hello')
  const ask = async () => (await app.inject({ url: '/before' })).statusCode
  expect([await ask(), await ask(), await ask()]).toEqual([200, 200, 429])
  await app.close()
})

it('a rejection passes the error handler of its context where the plugin is told so', async () => {
  const app = fastify()
  const seen: unknown[] = []
  await app.register(rateLimit({ limiter: setUp(), policy: 'login', perRoute: true, useErrorHandler: true }))
  app.setErrorHandler((error, _request, reply) => {
    seen.push(error)
    const { statusCode = 500 } = error as RateLimitError
    return reply.code(statusCode).send({ ours: (error as Error).message })
  })
  app.get('/', async () => 'hello')
  app.register(async below => {
    below.setErrorHandler((_error, _request, reply) => reply.code(420).send('enhance your calm'))
    below.get('/below', async () => 'hello')
  })
  const passed = await app.inject('/')
  expect([passed.statusCode, passed.body, passed.headers['x-ratelimit-remaining']]).toEqual([
    200,
    'hello',
    '0',
  ])
  const rejected = await app.inject('/')
  expect([rejected.statusCode, rejected.json().ours]).toEqual([
    429,
    expect.stringMatching(/^\S.*1 requests? .*/),
  ])
  expect(rejected.headers).toMatchObject({
    'content-type': 'application/json; charset=utf-8',
    'cache-control': 'no-store',
    'x-ratelimit-limit': '1',
    'retry-after': expect.stringMatching(/^\d+$/),
  })
  expect(seen).toEqual([expect.any(RateLimitError)])
  expect(seen[0]).toMatchObject({
    statusCode: 429,
    decision: expect.objectContaining({ allowed: false, policy: 'login' }),
    body: expect.stringContaining('"status":429'),
  })
  await app.inject('/below')
  const below = await app.inject('/below')
  expect([below.statusCode, below.body]).toEqual([420, 'enhance your calm'])
  expect((await app.inject('/missing')).statusCode).toBe(404)
  await app.close()
})

it('Fastify answers a rejection as any error where the app has no error handler', async () => {
  const app = fastify()
  await app.register(rateLimit({ limiter: setUp(), policy: 'login', useErrorHandler: true }))
  app.get('/', async () => 'hello')
  await app.inject('/')
  const rejected = await app.inject('/')
  expect(rejected.json()).toEqual({
    statusCode: 429,
    error: 'Too Many Requests',
    message: expect.stringContaining('1'),
  })
  await app.close()
})

it('a rejection does not pass the error handler by default, and only true or false are taken', async () => {
  const app = fastify()
  await app.register(rateLimit({ limiter: setUp(), policy: 'login' }))
  app.setErrorHandler((_error, _request, reply) => reply.code(500).send('sorry'))
  app.get('/', async () => 'hello')
  await app.inject('/')
  expect((await app.inject('/')).statusCode).toBe(429)
  await app.close()
  const wrong = { limiter: setUp(), policy: 'login' as const, useErrorHandler: 'yes' as unknown as boolean }
  expect(() => rateLimit(wrong)).toThrow(expect.objectContaining({ field: 'useErrorHandler' }))
})

it('a client that still sends reads the answer of the error handler, and is not listened to for long', async () => {
  const app = fastify()
  await app.register(rateLimit({ limiter: setUp(), policy: 'login', useErrorHandler: true }))
  app.post('/', async () => 'hello')
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port } = app.server.address() as AddressInfo
  await app.inject({ method: 'POST', url: '/' })
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.on('data', chunk => (answer += chunk)).on('error', () => {})
  // Not `once`, which rejects for a connection that is reset: that is one way to stop listening.
  const closed = new Promise(resolve => socket.on('close', resolve))
  socket.write('POST / HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000000\r\n\r\n')
  const sending = setInterval(() => socket.write('x'.repeat(10_000)), 20)
  await closed
  clearInterval(sending)
  expect(answer).toMatch(/^HTTP\/1\.1 429 /)
  expect(answer).toContain('"error":"Too Many Requests"')
  await app.close()
})
