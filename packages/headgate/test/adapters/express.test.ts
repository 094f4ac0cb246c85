import { createServer } from 'node:http'
import express from 'express'
import { expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { defineConfig } from '../../src/config.ts'
import { rateLimit } from '../../src/express.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { listening } from './listening.ts'

const policies = {
  api: slidingWindowLog({ limit: 5, window: '1m' }),
  login: slidingWindowLog({ limit: 1, window: '1m' }),
}

it('the middleware uses the user that an earlier one found, and keeps headers that others have set', async () => {
  const limiter = createLimiter({ policies })
  const app = express()
  app.use((req, res, next) => {
    res.setHeader('Access-Control-Allow-Origin', '*')
    Object.assign(req, { user: req.get('x-user') })
    next()
  })
  app.use(rateLimit({ limiter, policy: 'login', subject: req => `user:${(req as { user?: string }).user}` }))
  app.get('/', (_, res) => void res.send('hello'))
  const { url, close } = await listening(createServer(app))
  const ask = (user: string) => fetch(url, { headers: { 'x-user': user } })
  expect((await ask('1')).status).toBe(200)
  const denied = await ask('1')
  expect([denied.status, denied.headers.get('access-control-allow-origin')]).toEqual([429, '*'])
  expect((await ask('2')).status).toBe(200)
  await close()
})

it('the middleware of a limiter gives the key that the policy file names its tier', async () => {
  const config = defineConfig({
    tiers: { anonymous: { minute: 1 }, pro: { minute: 7 } },
    subjects: { 'apikey:pro-key-456': { tier: 'pro' } },
  })
  const ruled = createLimiter({ config, subject: { secret: 'a secret of the test' } })
  const app = express()
  app.use(rateLimit({ limiter: ruled }))
  app.get('/', (_, res) => void res.send('hello'))
  const { url, close } = await listening(createServer(app))
  const limitOf = async (key: string) =>
    (await fetch(url, { headers: { 'x-api-key': key } })).headers.get('x-ratelimit-limit')
  expect([await limitOf('pro-key-456'), await limitOf('made-up')]).toEqual(['7', '1'])
  await close()
})

it('a route has one budget, whatever its router is mounted under', async () => {
  const limiter = createLimiter({ policies })
  const app = express()
  const router = express.Router()
  router.get(
    '/login',
    rateLimit({ limiter, policy: 'login', perRoute: true }),
    (_, res) => void res.send('hello'),
  )
  app.use('/tenants/:tenant', router)
  const { url, close } = await listening(createServer(app))
  const ask = async (path: string) => (await fetch(`${url}${path}`)).status
  expect([
    await ask('/tenants/1/login'),
    await ask('/tenants/2/login'),
    await ask('/TENANTS/3/LOGIN'),
  ]).toEqual([200, 429, 429])
  await close()
})

it('an error of a handler reaches Express, also after an asynchronous decision', async () => {
  const limiter = createLimiter({ policies })
  const app = express()
  app.use(rateLimit({ limiter, policy: 'api', subject: async () => 'user:1' as const }))
  app.get('/', () => {
    throw new Error('mine')
  })
  app.use(
    ((error, _req, res, _next) => void res.status(500).send(error.message)) as express.ErrorRequestHandler,
  )
  const { url, close } = await listening(createServer(app))
  const answer = await fetch(url)
  expect([answer.status, await answer.text(), answer.headers.get('x-ratelimit-limit')]).toEqual([
    500,
    'mine',
    '5',
  ])
  await close()
})

it('a batch is charged for every operation in it, where the body was read before', async () => {
  const limiter = createLimiter({ policies })
  const app = express()
  app.use(express.json())
  const cost = ({ body }: express.Request) => (Array.isArray(body) ? body.length : 1)
  app.use(rateLimit({ limiter, policy: 'api', cost }))
  app.post('/rpc', (_, res) => void res.send('hello'))
  const { url, close } = await listening(createServer(app))
  const ask = async (operations: number): Promise<number> => {
    const body = JSON.stringify(Array.from({ length: operations }, (_, id) => ({ id, method: 'login' })))
    const headers = { 'content-type': 'application/json' }
    return (await fetch(`${url}/rpc`, { method: 'POST', body, headers })).status
  }
  expect([await ask(1_000), await ask(4), await ask(2), await ask(1), await ask(1)]).toEqual([
    429, 200, 429, 200, 429,
  ])
  await close()
})

it('the Express middleware rejects wrong options when it is made', () => {
  const limiter = createLimiter({ policies })
  // @ts-expect-error There is no such policy.
  expect(() => rateLimit({ limiter, policy: 'apo' })).toThrow(
    expect.objectContaining({ code: 'ERR_HEADGATE_INVALID_OPTION' }),
  )
})
