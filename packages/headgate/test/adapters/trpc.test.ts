import { createTRPCClient, httpBatchLink, TRPCClientError } from '@trpc/client'
import { initTRPC, TRPCError } from '@trpc/server'
import { createHTTPServer } from '@trpc/server/adapters/standalone'
import { expect, it, onTestFinished } from 'vitest'
import type { TrpcMiddleware } from '../../src/adapters/trpc.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { defineConfig } from '../../src/config.ts'
import { createLimiter } from '../../src/limiter/limiter.ts'
import { memoryStore } from '../../src/store/memory/memory-store.ts'
import { faultyStore } from '../../src/testing/index.ts'
import { rateLimit, rateLimitHeaders, rateLimitOf } from '../../src/trpc.ts'
import { perMinute } from '../support/rule-config.ts'
import { listening } from './listening.ts'

interface Context {
  readonly user: string
}

const t = initTRPC.context<Context>().create({
  errorFormatter: ({ shape, error }) => ({
    ...shape,
    data: { ...shape.data, rateLimit: rateLimitOf(error) },
  }),
})
const limiterOf = (limit: number) =>
  createLimiter({ policies: { api: slidingWindowLog({ limit, window: '1m' }) } })
const subject = ({ ctx }: { ctx: Context }): `user:${string}` => `user:${ctx.user}`

/** Starts a server with two procedures behind these middlewares; returns the answers to a user's calls. */
async function serve(...limits: readonly TrpcMiddleware<Context>[]) {
  const limited = limits.reduce((procedure, limit) => procedure.use(limit), t.procedure)
  const router = t.router({
    hello: limited.query(({ ctx }) => `hello, ${ctx.user}`),
    save: limited.mutation(() => 'saved'),
  })
  const server = createHTTPServer({
    router,
    createContext: ({ req }) => ({ user: String(req.headers['x-user']) }),
    responseMeta: ({ errors }) => ({ headers: rateLimitHeaders(errors) }),
  })
  const { url, close } = await listening(server)
  onTestFinished(close)
  const clientOf = (user: string) =>
    createTRPCClient<typeof router>({ links: [httpBatchLink({ url, headers: { 'x-user': user } })] })
  return { url, clientOf }
}

/** The outcomes of calls: their data, or the code of their error. */
async function outcomes(...calls: readonly Promise<string>[]): Promise<string[]> {
  const settled = await Promise.allSettled(calls)
  return settled.map(one => (one.status === 'fulfilled' ? one.value : one.reason.data.code))
}

it('each tRPC user is limited by the context, and a client over HTTP is told when to come back', async () => {
  const { url, clientOf } = await serve(rateLimit({ limiter: limiterOf(2), policy: 'api', subject }))
  const one = clientOf('1')
  expect([await one.hello.query(), await one.save.mutate()]).toEqual(['hello, 1', 'saved'])
  const error = await one.hello.query().catch(error => error)
  expect(error).toBeInstanceOf(TRPCClientError)
  expect(error.message).toMatch(/^Limit of 2 requests per 1m for policy api is used up/)
  expect(error.data).toMatchObject({
    code: 'TOO_MANY_REQUESTS',
    httpStatus: 429,
    rateLimit: { status: 429, limit: 2, remaining: 0, retryAfterMs: expect.any(Number) },
  })
  const raw = await fetch(`${url}/hello`, { headers: { 'x-user': '1' } })
  expect(raw.status).toBe(429)
  expect(Number(raw.headers.get('retry-after'))).toBeGreaterThan(0)
  expect(raw.headers.get('x-ratelimit-limit')).toBe('2')
  expect(raw.headers.get('content-type')).toMatch('application/json')
  expect(await clientOf('2').hello.query()).toBe('hello, 2')
})

it('every call of a batch is charged', async () => {
  const { clientOf } = await serve(rateLimit({ limiter: limiterOf(3), policy: 'api', subject }))
  const { hello } = clientOf('1')
  const calls = Array.from({ length: 5 }, () => hello.query())
  const came = await outcomes(...calls)
  expect(came.filter(outcome => outcome === 'hello, 1')).toHaveLength(3)
  expect(came.filter(outcome => outcome === 'TOO_MANY_REQUESTS')).toHaveLength(2)
})

it('a call is charged once where two middlewares ask the same, and once each where they do not', async () => {
  const limiter = limiterOf(2)
  const later = rateLimit({
    limiter,
    policy: 'api',
    subject: async ({ ctx }: { ctx: Context }) => `user:${ctx.user}` as const,
  })
  const { clientOf } = await serve(rateLimit({ limiter, policy: 'api', subject }), later)
  const { hello } = clientOf('1')
  expect(await outcomes(hello.query(), hello.query(), hello.query())).toEqual([
    'hello, 1',
    'hello, 1',
    'TOO_MANY_REQUESTS',
  ])
  const both = await serve(
    rateLimit({ limiter: limiterOf(5), policy: 'api', subject }),
    rateLimit({ limiter: limiterOf(1), policy: 'api', subject }),
  )
  const client = both.clientOf('1')
  expect(await outcomes(client.hello.query(), client.hello.query())).toEqual([
    'hello, 1',
    'TOO_MANY_REQUESTS',
  ])
})

it('a procedure has a budget of its own, or what the rules say of its path', async () => {
  const perRoute = await serve(rateLimit({ limiter: limiterOf(1), policy: 'api', subject, perRoute: true }))
  const one = perRoute.clientOf('1')
  expect(await outcomes(one.hello.query())).toEqual(['hello, 1'])
  expect(await outcomes(one.save.mutate())).toEqual(['saved'])
  expect(await outcomes(one.hello.query())).toEqual(['TOO_MANY_REQUESTS'])
  const config = defineConfig({
    policies: { save: perMinute(1) },
    rules: [{ match: { method: 'POST', path: '/save' }, policy: 'save' }],
  })
  const ruled = createLimiter({ config })
  onTestFinished(() => ruled.close())
  const { clientOf } = await serve(rateLimit({ limiter: ruled, subject }))
  const client = clientOf('1')
  expect(await outcomes(client.save.mutate())).toEqual(['saved'])
  expect(await outcomes(client.save.mutate())).toEqual(['TOO_MANY_REQUESTS'])
  expect(await outcomes(client.hello.query(), client.hello.query())).toEqual(['hello, 1', 'hello, 1'])
})

it('the failure mode decides where the store or the subject is at fault', async () => {
  const store = faultyStore(memoryStore())
  store.faults.always({ type: 'error' })
  const limiter = createLimiter({ store, policies: { api: slidingWindowLog({ limit: 9, window: '1m' }) } })
  const onError = () => {}
  const broken = () => {
    throw new Error('no session')
  }
  for (const who of [subject, broken]) {
    const options = { limiter, policy: 'api', subject: who, onError } as const
    const open = await serve(rateLimit({ ...options, onStoreFailure: 'open' }))
    expect(await outcomes(open.clientOf('1').hello.query())).toEqual(['hello, 1'])
    const closed = await serve(rateLimit({ ...options, onStoreFailure: 'closed' }))
    expect(await outcomes(closed.clientOf('1').hello.query())).toEqual(['SERVICE_UNAVAILABLE'])
  }
})

it('the tRPC middleware rejects wrong options when it is made, and ignores other errors', async () => {
  const limiter = limiterOf(1)
  expect(() => rateLimit({ limiter, policy: 'api' } as never)).toThrow(/^subject: expected a function/)
  expect(() => rateLimit({ limiter, policy: 'apo' as 'api', subject })).toThrow(
    /^policy: expected one of api/,
  )
  const other = new TRPCError({ code: 'NOT_FOUND' })
  expect([rateLimitOf(other), rateLimitHeaders([other])]).toEqual([null, {}])
})

it('a tRPC call whose context names nobody has a budget with all such calls', async () => {
  const logger = { info: () => {}, warn: () => {}, error: () => {} }
  const { clientOf } = await serve(rateLimit({ limiter: limiterOf(2), policy: 'api', subject, logger }))
  const nobody = clientOf('')
  const undefinedUser = clientOf('undefined')
  expect(await outcomes(nobody.hello.query())).toEqual(['hello, '])
  expect(await outcomes(undefinedUser.hello.query())).toEqual(['hello, undefined'])
  expect(await outcomes(nobody.hello.query())).toEqual(['TOO_MANY_REQUESTS'])
  expect(await outcomes(clientOf('1').hello.query())).toEqual(['hello, 1'])
})
