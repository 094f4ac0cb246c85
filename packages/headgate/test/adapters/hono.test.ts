import { Hono } from 'hono'
import { expect, it } from 'vitest'
import { rateLimit } from '../../src/hono.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { slidingWindowLog } from '../../src/policy/limits.ts'

const setUp = () => createLimiter({ policies: { api: slidingWindowLog({ limit: 9, window: '1m' }) } })

it('the Hono middleware adds its headers to a response of the handler, also to one that cannot be changed', async () => {
  const app = new Hono()
  app.use(rateLimit({ limiter: setUp(), policy: 'api', subject: c => `user:${c.req.header('x-user')}` }))
  app.get('/text', c => c.text('hello'))
  app.get('/own', () => new Response('hello', { headers: { 'X-Own': 'yes' } }))
  app.get('/fixed', () => Response.redirect('http://localhost/there', 302))
  app.get('/broken', () => {
    throw new Error('mine')
  })
  for (const [path, status] of [
    ['/text', 200],
    ['/own', 200],
    ['/fixed', 302],
    ['/nowhere', 404],
  ] as const) {
    const answer = await app.request(path, { headers: { 'x-user': path } })
    expect([answer.status, answer.headers.get('x-ratelimit-remaining')]).toEqual([status, '8'])
  }
  expect((await app.request('/own')).headers.get('x-own')).toBe('yes')
})

it('the Hono middleware outside Node needs a subject: without one the request passes, and the fault is counted and reported', async () => {
  const limiter = setUp()
  const errors: Error[] = []
  const app = new Hono()
  app.use(rateLimit({ limiter, policy: 'api', onError: error => errors.push(error as Error) }))
  app.get('/', c => c.text('hello'))
  expect((await app.request('/')).status).toBe(200)
  expect(errors.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^subject: expected one to be given/),
  ])
  expect(limiter.counts().faults).toBe(1)
})
