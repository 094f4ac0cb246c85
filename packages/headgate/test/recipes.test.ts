/** Runs every program of the page of recipes as it stands, and holds what it promises. */
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Limiter, RuleLimiter } from '../src/limiter/limiter.ts'
import { onTime } from './support/on-time.ts'
import { type RedisProcess, startRedis } from './support/redis-process.ts'
import { sendCommand } from './support/resp.ts'
import { type RestFront, startRestFront } from './support/rest-front.ts'
import { runShown } from './support/shown-program.ts'

const PAGE = readFileSync(new URL('../../../docs/guide/recipes.md', import.meta.url), 'utf8')

let redis: RedisProcess
let front: RestFront
const servers: Server[] = []
beforeAll(async () => {
  redis = await startRedis()
  front = await startRestFront(redis.port)
  process.env.UPSTASH_REDIS_REST_URL = front.url
  process.env.UPSTASH_REDIS_REST_TOKEN = front.token
  process.env.PORT = '0'
})
afterAll(async () => {
  for (const server of servers) server.close()
  await front.close()
  await redis.stop()
})

const tried = new Set<string>()

/** The exports of the program under a heading. */
function recipe<Exports>(heading: string): Promise<Exports> {
  tried.add(heading)
  return runShown<Exports>('recipes.md', `## ${heading}\n`)
}

type Ask = (path: string, init?: RequestInit) => Promise<Response>

/** Serves the `app` of a recipe. */
async function serving(heading: string): Promise<Ask> {
  return asking((await recipe<{ app: RequestListener }>(heading)).app)
}

async function asking(app: RequestListener): Promise<Ask> {
  const server = createServer(app).listen(0, '127.0.0.1')
  servers.push(server)
  await new Promise(resolve => server.once('listening', resolve))
  return (path, init) => fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`, init)
}

async function statuses(ask: () => Promise<Response>, times: number): Promise<number[]> {
  const found: number[] = []
  for (let time = 0; time < times; time++) found.push((await ask()).status)
  return found
}

const as = (user: string): RequestInit => ({ headers: { 'x-user': user } })
const json = (body: object, headers = {}): RequestInit => ({
  method: 'POST',
  headers: { 'content-type': 'application/json', ...headers },
  body: JSON.stringify(body),
})

it('login: five guesses at an account, twenty from an address, and a login forgets the failures', async () => {
  const ask = await serving('Login: stop brute force')
  const guess = (name: string) => () => ask('/login', json({ name, password: 'guess' }))
  const login = () => ask('/login', json({ name: 'ada', password: 'correct horse' }))
  expect(await statuses(guess('ada'), 4)).toEqual([401, 401, 401, 401])
  expect((await login()).status).toBe(200)
  expect(await statuses(guess(' ADA'), 6)).toEqual([401, 401, 401, 401, 401, 429])
  expect((await login()).status).toBe(429)
  const others = await statuses(guess('bob'), 5)
  expect([...others, ...(await statuses(guess('eve'), 6))]).toEqual([...Array(10).fill(401), 429])
})

it('plans: each has its own limit', async () => {
  const ask = await serving('Plans: free, pro, enterprise')
  expect(await statuses(() => ask('/', as('bob')), 4)).toEqual([200, 200, 200, 429])
  expect(await statuses(() => ask('/', as('ada')), 10)).toEqual(Array(10).fill(200))
})

it('a monthly plan: bought units follow those of the month, and a payment told twice counts once', () =>
  onTime(buyUnits))

async function buyUnits(): Promise<void> {
  await sendCommand(redis.port, 'FLUSHALL')
  const { createPlan } = await recipe<{
    createPlan(url: string): { app: RequestListener; close(): Promise<void> }
  }>('A monthly plan with top-ups')
  const { app, close } = createPlan(`redis://127.0.0.1:${redis.port}`)
  const ask = await asking(app)
  const usage = async () => (await ask('/usage', as('ada'))).json()
  expect(await statuses(() => ask('/', as('ada')), 4)).toEqual([200, 200, 200, 429])
  const paid = async () => (await ask('/paid', json({ user: 'ada', units: 2, payment: 'pay-1' }))).json()
  expect([await paid(), await paid()]).toEqual([{ added: true }, { added: false }])
  expect(await usage()).toMatchObject({ used: 3, limit: 3, credits: 2, resetsAt: expect.any(Number) })
  expect(await statuses(() => ask('/', as('ada')), 3)).toEqual([200, 200, 429])
  expect(await usage()).toMatchObject({ used: 5, limit: 3, credits: 0 })
  await close()
}

it('cost: an export takes as much as ten items', async () => {
  const ask = await serving('Cost: expensive routes take more')
  expect(await statuses(() => ask('/export'), 1)).toEqual([200])
  expect(await statuses(() => ask('/items'), 1)).toEqual([200])
  expect(await statuses(() => ask('/export'), 1)).toEqual([429])
  expect(await statuses(() => ask('/items'), 10)).toEqual([...Array(9).fill(200), 429])
})

it('skip: health checks and the allowlist are never limited', async () => {
  const ask = await serving('Skip: health checks, an allowlist')
  expect(await statuses(() => ask('/health'), 5)).toEqual(Array(5).fill(200))
  expect(await statuses(() => ask('/', { headers: { 'x-api-key': 'partner-key' } }), 5)).toEqual(
    Array(5).fill(200),
  )
  expect(await statuses(() => ask('/'), 3)).toEqual([200, 200, 429])
})

it('a 429 of your own has its body and says when to come back', async () => {
  const ask = await serving('A 429 of your own: custom message')
  await ask('/')
  const denied = await ask('/')
  expect(denied.headers.get('retry-after')).toMatch(/^\d+$/)
  expect(await denied.json()).toEqual({
    error: 'slow_down',
    message: expect.stringMatching(/^Try again in \d+ s$/),
  })
})

it('the quota is shown without being used', async () => {
  const ask = await serving('Show the quota in a JSON body')
  for (let time = 0; time < 3; time++) await ask('/', as('ada'))
  for (let time = 0; time < 2; time++)
    expect(await (await ask('/quota', as('ada'))).json()).toMatchObject({ limit: 10, remaining: 7 })
})

it('LLM tokens: an answer costs what it took, not what it might have taken', async () => {
  const ask = await serving('LLM tokens in a streaming route')
  const chat = () => ask('/chat', json({ prompt: 'hello' }, { 'x-user': 'ada' }))
  for (let time = 0; time < 5; time++) expect(await (await chat()).text()).toBe('hello '.repeat(20))
  // 100 tokens are used: another estimate of 900 fits, and one of 901 does not.
  const estimate = (maxTokens: number) =>
    ask('/chat', json({ prompt: 'hello', maxTokens }, { 'x-user': 'ada' }))
  expect((await estimate(901)).status).toBe(429)
  expect((await estimate(900)).status).toBe(200)
})

it('outbound: two processes together call no more often than the API allows, and every call is made', async () => {
  const { createCaller } = await recipe<{
    createCaller(url: string): { call: typeof fetch; close(): Promise<void> }
  }>('Outbound calls across processes')
  const times: number[] = []
  const api = createServer((_, response) => {
    times.push(performance.now())
    response.end()
  }).listen(0, '127.0.0.1')
  servers.push(api)
  await new Promise(resolve => api.once('listening', resolve))
  const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}/`
  const callers = [1, 2].map(() => createCaller(`redis://127.0.0.1:${redis.port}`))
  await Promise.all(callers.flatMap(({ call }) => Array.from({ length: 40 }, () => call(url))))
  for (const { close } of callers) await close()
  expect(times).toHaveLength(80)
  // The fifty-first waited for the first to leave the window; it may have travelled faster than that one.
  expect((times[50] as number) - (times[0] as number)).toBeGreaterThan(800)
})

it('five exports run at once, the sixth is denied, and a place comes free', async () => {
  const ask = await serving('Five exports at once')
  const together = await Promise.all(Array.from({ length: 7 }, () => ask('/export')))
  expect(together.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 200, 429, 429])
  expect((await ask('/export')).status).toBe(200)
})

it('a request that is a little too early waits, and passes', async () => {
  const ask = await serving('Wait instead of a 429')
  const together = await Promise.all(Array.from({ length: 4 }, () => ask('/')))
  expect(together.map(({ status }) => status)).toEqual([200, 200, 200, 200])
  const waited = (await Promise.all(together.map(answer => answer.json()))) as { waitedMs: number }[]
  expect(waited.filter(({ waitedMs }) => waitedMs === 0)).toHaveLength(2)
})

it('a unit test moves the clock', async () => {
  const { aLimitEndsWithItsWindow } = await recipe<{ aLimitEndsWithItsWindow(): Promise<boolean[]> }>(
    'Unit tests with a fake clock',
  )
  expect(await aLimitEndsWithItsWindow()).toEqual([true, false, true])
})

it('shadow denies nobody and counts whom it would have', async () => {
  const { limiter } = await recipe<{ limiter: RuleLimiter }>('Shadow: see whom a new limit would deny')
  for (let time = 0; time < 5; time++)
    expect(await limiter.request({ subject: 'user:1', method: 'GET', path: '/' })).toMatchObject({
      allowed: true,
    })
  expect(limiter.counts().shadow).toMatchObject({ api: { wouldDeny: 3 } })
})

it('numbers are overridden for all or for one, and a user is banned until it is pardoned', async () => {
  const { limiter, raiseForAll, raiseFor, ban, unban } = await recipe<
    { limiter: Limiter; raiseForAll(): Promise<void> } & Record<
      'raiseFor' | 'ban' | 'unban',
      (user: string) => Promise<void>
    >
  >('Override and ban from code')
  const limitOf = async (user: string) => (await limiter.check(`user:${user}`, { policy: 'api' })).limit
  expect(await limitOf('ada')).toBe(3)
  await raiseForAll()
  await raiseFor('ada')
  expect([await limitOf('ada'), await limitOf('bob')]).toEqual([500, 5])
  await ban('ada')
  expect(await limiter.check('user:ada', { policy: 'api' })).toMatchObject({
    allowed: false,
    reason: 'banned',
    retryAfterMs: expect.closeTo(86_400_000, -5),
  })
  await unban('ada')
  expect(await limiter.check('user:ada', { policy: 'api' })).toMatchObject({ allowed: true })
})

it('tenants on one Redis have limits of their own', async () => {
  const { createTenant } = await recipe<{ createTenant(url: string, tenant: string): Limiter }>(
    'One Redis, several tenants or environments',
  )
  const [one, other] = ['one', 'other'].map(name => createTenant(`redis://127.0.0.1:${redis.port}`, name))
  const check = (limiter: Limiter | undefined) => limiter?.check('user:1', { policy: 'api' })
  for (let time = 0; time < 2; time++)
    expect(await check(one)).toMatchObject({ allowed: true, source: 'redis' })
  expect(await check(one)).toMatchObject({ allowed: false })
  expect(await check(other)).toMatchObject({ allowed: true })
  await one?.close()
  await other?.close()
})

it('shutting down answers what is in progress', async () => {
  const { server, shutDown } = await recipe<{ server: Server; shutDown(): Promise<void> }>(
    'Graceful shutdown',
  )
  if (!server.listening) await new Promise(resolve => server.once('listening', resolve))
  const answer = fetch(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`, {
    headers: { connection: 'close' },
  })
  await new Promise(resolve => server.once('request', resolve))
  await shutDown()
  expect(await (await answer).text()).toBe('done')
})

it('a Lambda limits by the address that the gateway in front of it reports', async () => {
  const { handler } = await recipe<{
    handler(event: object): Promise<{ statusCode: number; headers: Record<string, string> }>
  }>('Serverless and edge: Lambda, Workers')
  const event = { requestContext: { http: { sourceIp: '192.0.2.1' } } }
  const answers = [await handler(event), await handler(event), await handler(event)]
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200, 429])
  expect(answers[2]?.headers).toHaveProperty('Retry-After')
})

it('behind a load balancer each client has its own limit, and a made-up entry gets nobody a second one', async () => {
  const ask = await serving('Behind a load balancer')
  const from = (forwarded: string) => ask('/', { headers: { 'x-forwarded-for': forwarded } })
  expect(await statuses(() => from('192.0.2.1'), 2)).toEqual([200, 429])
  expect((await from('192.0.2.2')).status).toBe(200)
  expect((await from('198.51.100.7, 192.0.2.1')).status).toBe(429)
})

it('every recipe was tried', () => {
  expect([...PAGE.matchAll(/^## (.+)$/gm)].map(([, heading = '']) => heading).sort()).toEqual(
    [...tried].sort(),
  )
})
