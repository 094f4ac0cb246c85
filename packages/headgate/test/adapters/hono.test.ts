import { Hono } from 'hono'
import { expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { rateLimit } from '../../src/hono.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { keepLines } from '../support/kept-lines.ts'
import { configOf, perMinute, ruleOf } from '../support/rule-config.ts'

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

it('the Hono middleware outside Node has one budget for all callers without a subject, and warns once', async () => {
  const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 2, window: '1m' }) } })
  const { logger, lines } = keepLines()
  const app = new Hono()
  app.use(rateLimit({ limiter, policy: 'api', logger }))
  app.get('/', c => c.text('hello'))
  const statuses: number[] = []
  for (let time = 0; time < 4; time++) statuses.push((await app.request('/')).status)
  expect(statuses).toEqual([200, 200, 429, 429])
  expect(lines).toEqual([expect.stringMatching(/^warn: WARN_HEADGATE_NO_ADDRESS: .* anonymous:unknown$/)])
  expect((await limiter.peek('anonymous:unknown', { policy: 'api' })).remaining).toBe(0)
})

it('the Hono middleware outside Node holds callers without an address to what the rules give an address', async () => {
  const config = configOf({
    policies: { lenient: perMinute(9), strict: perMinute(1) },
    default: { policy: 'lenient' },
    rules: [
      ruleOf({ name: 'address', match: { subjects: ['ip'] }, charge: { policy: 'strict' } }),
      ruleOf({
        name: 'login',
        match: { path: '/login', subjects: ['ip'] },
        charge: { policy: 'strict' },
        scope: 'login',
      }),
    ],
  })
  const app = new Hono()
  app.use(rateLimit({ limiter: createLimiter({ config }), logger: keepLines().logger }))
  app.get('*', c => c.text('hello'))
  const statusOf = async (path: string) => (await app.request(path)).status
  expect([await statusOf('/'), await statusOf('/'), await statusOf('/other')]).toEqual([200, 429, 429])
  expect([await statusOf('/login'), await statusOf('/login')]).toEqual([200, 429])
})
