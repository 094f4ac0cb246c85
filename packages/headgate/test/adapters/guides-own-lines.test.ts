/** The lines by which the guides name callers, and a caller who leaves the name out: held to a limit of 5, always. */
import { request } from 'node:http'
import express, { type Request as ExpressRequest } from 'express'
import fastify from 'fastify'
import { Hono } from 'hono'
import Koa from 'koa'
import { afterAll, describe, expect, it, vi } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import * as headgateExpress from '../../src/express.ts'
import * as headgateFastify from '../../src/fastify.ts'
import { rateLimit as limitFetch } from '../../src/fetch.ts'
import * as headgateHono from '../../src/hono.ts'
import * as headgateKoa from '../../src/koa.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { limitAction } from '../../src/next.ts'
import { keepLines } from '../support/kept-lines.ts'
import { listening, underTest } from './listening.ts'

vi.mock('next/headers.js', () => ({ headers: async () => new Headers() }))

const TIMES = 100
const limiterOf = () => createLimiter({ policies: { api: slidingWindowLog({ limit: 5, window: '1m' }) } })
const optionsOf = () => ({ limiter: limiterOf(), policy: 'api', logger: keepLines().logger }) as const
const closing: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const close of closing) await close()
})

type Headers_ = Readonly<Record<string, string>>

async function passed(times: number, ask: () => Promise<number>): Promise<number> {
  let count = 0
  for (let time = 0; time < times; time++) if ((await ask()) === 200) count++
  return count
}

/** Unlike `fetch`, sends an empty header as it is. */
function get(url: string, headers: Headers_): Promise<number> {
  return new Promise((resolve, reject) => {
    request(url, { headers }, answer => {
      answer.resume()
      answer.on('end', () => resolve(answer.statusCode ?? 0))
    })
      .on('error', reject)
      .end()
  })
}

async function expressWith(subject: (req: ExpressRequest) => never | `${string}:${string}`): Promise<string> {
  const app = express()
  app.use(headgateExpress.rateLimit({ ...optionsOf(), subject, onError: () => {} }))
  app.get('/', (_, res) => void res.send('hello'))
  const { url, close } = await listening((await import('node:http')).createServer(app))
  closing.push(close)
  return url
}

describe('a caller who names nobody', () => {
  it.each(['', ' ', '\t', undefined])(
    'an X-API-Key of %j passes a fetch handler 5 times of 100',
    async key => {
      const limited = limitFetch({
        ...optionsOf(),
        subject: one => ({ type: 'apikey', id: one.headers.get('x-api-key') ?? '' }),
      })(() => new Response('hello'))
      const headers: Record<string, string> = key === undefined ? {} : { 'x-api-key': key }
      const ask = async () => (await limited(new Request('http://a/', { headers }))).status
      expect(await passed(TIMES, ask)).toBe(5)
    },
  )

  it.each<[string, (req: ExpressRequest) => `${string}:${string}`, Headers_]>([
    ['an empty X-User', req => `user:${req.get('x-user') ?? 'nobody'}`, { 'x-user': '' }],
    ['no X-User', req => `user:${req.headers['x-user']}`, {}],
    ['no login', req => `user:${(req as never as { user: { id: string } }).user.id}`, {}],
    ['no login, looked for', req => `user:${(req as { user?: { id: string } }).user?.id}`, {}],
  ])('%s passes Express 5 times of 50', async (_, subject, headers) => {
    const url = await expressWith(subject)
    expect(await passed(50, () => get(url, headers))).toBe(5)
  })

  it('an empty X-User passes Fastify 5 times of 50', async () => {
    const app = fastify()
    await app.register(
      headgateFastify.rateLimit({ ...optionsOf(), subject: one => `user:${one.headers['x-user']}` }),
    )
    app.get('/', async () => 'hello')
    await app.listen({ port: 0, host: '127.0.0.1' })
    const { url, close } = underTest(app.server)
    closing.push(close)
    expect(await passed(25, () => get(url, { 'x-user': '' }))).toBe(5)
    expect(await passed(25, () => get(url, {}))).toBe(0)
  })

  it('an empty X-User passes Koa 5 times of 50', async () => {
    const app = new Koa()
    app.use(headgateKoa.rateLimit({ ...optionsOf(), subject: ctx => `user:${ctx.get('x-user')}` }))
    app.use(ctx => {
      ctx.body = 'hello'
    })
    const { url, close } = await listening((await import('node:http')).createServer(app.callback()))
    closing.push(close)
    expect(await passed(50, () => get(url, { 'x-user': '' }))).toBe(5)
  })

  it('a missing X-User passes Hono 5 times of 50, on whatever it runs', async () => {
    const app = new Hono()
    app.use(headgateHono.rateLimit({ ...optionsOf(), subject: c => `user:${c.req.header('x-user')}` }))
    app.get('/', c => c.text('hello'))
    expect(await passed(50, async () => (await app.request('/')).status)).toBe(5)
  })

  it('an empty name passes a server action 5 times of 50, and one name in several spellings, too', async () => {
    // As in docs/guide/frameworks.md.
    const accountOf = (form: FormData) =>
      String(form.get('name') ?? '')
        .normalize('NFKC')
        .trim()
        .toLowerCase()
    const login = limitAction(async (_: FormData) => 'in', {
      ...optionsOf(),
      subject: ({ args: [form] }) => `account:${accountOf(form)}`,
    })
    const call = async (name: string | null) => {
      const form = new FormData()
      if (name !== null) form.set('name', name)
      return (await login(form)) === 'in' ? 200 : 429
    }
    expect(await passed(25, () => call(''))).toBe(5)
    expect(await passed(25, () => call(null))).toBe(0)
    const names = ['ada', 'ADA', ' Ada', 'ada\t', 'ａｄａ']
    let time = 0
    expect(await passed(20, () => call(names[time++ % names.length] as string))).toBe(5)
  })
})

describe('limiter.check in code', () => {
  it('a check without an id rejects with the name of the field', async () => {
    for (const subject of ['user:', ':1', { type: 'user', id: '' }] as const) {
      await expect(limiterOf().check(subject, { policy: 'api' })).rejects.toMatchObject({
        code: 'ERR_HEADGATE_INVALID_SUBJECT',
        field: 'subject',
      })
    }
  })

  it('a check of undefined or null passes as any other, and is warned of once', async () => {
    const { logger, fields } = keepLines()
    const limiter = createLimiter({
      policies: { api: slidingWindowLog({ limit: 5, window: '1m' }) },
      logger,
    })
    const ask = (subject: `user:${string}`) => async () =>
      (await limiter.check(subject, { policy: 'api' })).allowed ? 200 : 429
    expect(await passed(9, ask('user:undefined'))).toBe(5)
    expect(await passed(9, ask('user:null'))).toBe(5)
    expect(await passed(9, ask('user:annull'))).toBe(5)
    expect(fields).toEqual([{ code: 'WARN_HEADGATE_NAMES_NOBODY' }])
  })
})
