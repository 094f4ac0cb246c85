import { spawn } from 'node:child_process'
import { once, setMaxListeners } from 'node:events'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import {
  concurrency,
  createLimiter,
  HeadgateError,
  memoryStore,
  slidingWindowLog,
  tokenBucket,
} from '../src/index.ts'
import { rateLimit } from '../src/node-http.ts'
import { pauseAfterMs } from '../src/outbound/remote-quota.ts'
import { limitFetch } from '../src/outbound.ts'
import { changed } from './support/changed.ts'
import { onTime } from './support/on-time.ts'
import { startRedis } from './support/redis-process.ts'

describe('acquire', () => {
  const policies = {
    api: slidingWindowLog({ limit: 1, window: '200ms' }),
    slow: slidingWindowLog({ limit: 1, window: '1h' }),
    permits: concurrency({ limit: 1 }),
  }

  it('acquire waits for its turn, in the order it was asked', async () => {
    const limiter = createLimiter({ policies })
    const order: number[] = []
    const asked = [1, 2, 3, 4].map(async number => {
      const { allowed } = await limiter.acquire('host:a', { policy: 'api' })
      if (allowed) order.push(number)
    })
    await Promise.all(asked)
    expect(order).toEqual([1, 2, 3, 4])
  })

  it('acquire costs as many questions as one caller, however many wait', async () => {
    let questions = 0
    const limiter = createLimiter({
      policies: { api: slidingWindowLog({ limit: 1, window: '1s' }) },
      onEvent: () => questions++,
    })
    const signal = AbortSignal.timeout(500)
    setMaxListeners(500, signal)
    await Promise.allSettled(
      Array.from({ length: 500 }, () => limiter.acquire('host:a', { policy: 'api', signal })),
    )
    expect(questions).toBeLessThanOrEqual(3)
  })

  it('acquire answers with the denial when the time is up, or would be', async () => {
    const limiter = createLimiter({ policies })
    await limiter.acquire('host:a', { policy: 'slow' })
    const denied = await limiter.acquire('host:a', { policy: 'slow', timeoutMs: 50 })
    expect([denied.allowed, denied.reason]).toEqual([false, 'limit-exceeded'])
    const never = await limiter.acquire('host:a', { policy: 'slow', cost: 2 })
    expect(never.retryAfterMs).toBeNull()
  })

  it('acquire gives up when aborted, and lets the next one go', async () => {
    const limiter = createLimiter({ policies })
    await limiter.acquire('host:a', { policy: 'api' })
    const giveUp = new AbortController()
    const first = limiter.acquire('host:a', { policy: 'api', signal: giveUp.signal })
    const second = limiter.acquire('host:a', { policy: 'api' })
    giveUp.abort(new Error('enough'))
    await expect(first).rejects.toThrow('enough')
    expect((await second).allowed).toBe(true)
  })

  it('acquire refunds a charge for a caller who has given up', async () => {
    const store = memoryStore()
    const giveUp = new AbortController()
    const late = changed(store, {
      async decide(check) {
        store.decide(check)
        giveUp.abort(new Error('enough'))
      },
    })
    const limiter = createLimiter({ store: late, policies })
    const acquired = limiter.acquire('host:a', { policy: 'api', signal: giveUp.signal })
    await expect(acquired).rejects.toThrow('enough')
    const { remaining, limit } = await limiter.peek('host:a', { policy: 'api' })
    expect(remaining).toBe(limit)
  })

  it('acquire waits for a permit to be released', async () => {
    const limiter = createLimiter({ policies })
    const held = await limiter.acquire('host:a', { policy: 'permits' })
    const next = limiter.acquire('host:a', { policy: 'permits' })
    await held.release()
    expect((await next).allowed).toBe(true)
  })

  it.each([
    ['timeoutMs', '-1', { policy: 'api', timeoutMs: -1 }],
    ['signal', '"soon"', { policy: 'api', signal: 'soon' }],
    ['signal', 'a value of type object', { policy: 'api', signal: {} }],
    ['signal', 'a value of type object', { policy: 'api', signal: new AbortController() }],
    ['policy', 'undefined', undefined],
    ['policy', 'undefined', null],
    ['policy', 'undefined', {}],
  ])('acquire names what is wrong with its options: %s, %s', async (field, got, options) => {
    const limiter = createLimiter({ policies })
    const error = await limiter.acquire('host:a', options as never).catch(error => error)
    expect(error).toBeInstanceOf(HeadgateError)
    expect(error).toMatchObject({ field, got, expected: expect.any(String) })
  })

  it('acquire takes a signal of null for none, as fetch does', async () => {
    const limiter = createLimiter({ policies })
    const options = { policy: 'api', signal: null } as never
    expect((await limiter.acquire('host:a', options)).allowed).toBe(true)
  })
})

describe('headers of the other side', () => {
  const NOW_MS = 1_800_000_000_000
  it.each([
    [{ 'retry-after': '7' }, 7_000],
    [{ 'retry-after': new Date(NOW_MS + 9_000).toUTCString() }, 9_000],
    [{ 'retry-after': 'soon' }, 0],
    [{ 'retry-after': '999999' }, 3_600_000],
    [{ ratelimit: '"api";r=0;t=12' }, 12_000],
    [{ ratelimit: '"api";r=3;t=12' }, 0],
    [{ ratelimit: 'limit=10, remaining=0, reset=5' }, 5_000],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '30' }, 30_000],
    [{ 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': String(NOW_MS / 1_000 + 4) }, 4_000],
    [{ 'x-ratelimit-remaining': '2', 'x-ratelimit-reset': '30' }, 0],
    [{ 'x-ratelimit-remaining': 'none', 'x-ratelimit-reset': '30' }, 0],
    [{}, 0],
    [{ 'retry-after-ms': '1500', 'retry-after': '7' }, 1_500],
    [{ 'retry-after-ms': 'soon', 'retry-after': '7' }, 7_000],
    [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '6m0s' }, 360_000],
    [{ 'x-ratelimit-remaining-requests': '0', 'x-ratelimit-reset-requests': '12ms' }, 12],
    [{ 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '1h2m3.5s' }, 3_600_000],
    [{ 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '2m59.56s' }, 179_560],
    [{ 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '250µs' }, 1],
    [{ 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '3' }, 3_000],
    [{ 'x-ratelimit-remaining-tokens': '17', 'x-ratelimit-reset-tokens': '6m0s' }, 0],
    [{ 'x-ratelimit-remaining-tokens': '0', 'x-ratelimit-reset-tokens': '6 minutes' }, 0],
    [{ 'x-ratelimit-remaining-tokens': '0' }, 0],
    [
      {
        'x-ratelimit-remaining-requests': '0',
        'x-ratelimit-reset-requests': '2s',
        'x-ratelimit-remaining-tokens': '0',
        'x-ratelimit-reset-tokens': '9s',
      },
      9_000,
    ],
    [
      {
        'anthropic-ratelimit-requests-remaining': '4',
        'anthropic-ratelimit-requests-reset': new Date(NOW_MS + 60_000).toISOString(),
        'anthropic-ratelimit-input-tokens-remaining': '0',
        'anthropic-ratelimit-input-tokens-reset': new Date(NOW_MS + 8_000).toISOString(),
      },
      8_000,
    ],
    [
      {
        'anthropic-ratelimit-output-tokens-remaining': '0',
        'anthropic-ratelimit-output-tokens-reset': '2027-01-15T10:00:05+02:00',
      },
      5_000,
    ],
    [{ 'anthropic-ratelimit-tokens-remaining': '0', 'anthropic-ratelimit-tokens-reset': 'tomorrow' }, 0],
    [
      {
        'anthropic-ratelimit-tokens-remaining': '0',
        'anthropic-ratelimit-tokens-reset': new Date(NOW_MS - 1_000).toISOString(),
      },
      0,
    ],
  ])('an answer with %j means a pause of %d ms', (headers, ms) => {
    expect(pauseAfterMs(new Headers(headers as Record<string, string>), NOW_MS)).toBe(ms)
  })
})

describe('limitFetch', () => {
  const policies = {
    api: tokenBucket({ capacity: 100, refillPerSecond: 100 }),
    one: concurrency({ limit: 1 }),
  }
  let server: Server
  let url: string
  let answers: { status: number; headers: Record<string, string> }[] = []
  const arrivals: number[] = []
  beforeAll(async () => {
    server = createServer((_, res) => {
      arrivals.push(performance.now())
      const { status, headers } = answers.shift() ?? { status: 200, headers: {} }
      res.writeHead(status, headers).end('hello')
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  })
  afterAll(() => void server.close())

  it('limitFetch leaves a host alone for as long as it asks', async () => {
    answers = [{ status: 429, headers: { 'retry-after': '1' } }]
    arrivals.length = 0
    const limited = limitFetch(fetch, { limiter: createLimiter({ policies }), policy: 'api' })
    expect((await limited(url)).status).toBe(429)
    expect((await limited(url)).status).toBe(200)
    expect((arrivals[1] as number) - (arrivals[0] as number)).toBeGreaterThanOrEqual(990)
  })

  it('limitFetch rejects when a host asks for longer than it may wait, and sends nothing', async () => {
    answers = [{ status: 503, headers: { 'retry-after': '60' } }]
    arrivals.length = 0
    const limited = limitFetch(fetch, { limiter: createLimiter({ policies }), policy: 'api', timeoutMs: 100 })
    await limited(url)
    await expect(limited(url)).rejects.toMatchObject({ code: 'ERR_HEADGATE_NO_TURN' })
    expect(arrivals.length).toBe(1)
  })

  it('limitFetch holds a permit until the answer has been read', async () => {
    answers = []
    const limiter = createLimiter({ policies })
    const limited = limitFetch(fetch, { limiter, policy: 'one', timeoutMs: 150 })
    const first = await limited(url)
    expect([first.url, first.redirected, first.type]).toEqual([url, false, 'basic'])
    await expect(limited(url)).rejects.toMatchObject({ code: 'ERR_HEADGATE_NO_TURN' })
    expect(await first.text()).toBe('hello')
    expect((await limited(url)).status).toBe(200)
  })

  it('limitFetch keeps no more calls in flight than the host can sustain, and lets the others wait in order', async () => {
    const waiting: (() => void)[] = []
    let most = 0
    const slow = (async () => {
      most = Math.max(most, waiting.length + 1)
      await new Promise<void>(resolve => waiting.push(resolve))
      return new Response('hello')
    }) as typeof fetch
    const limiter = createLimiter({ policies: { any: slidingWindowLog({ limit: 2, window: '1h' }) } })
    const options = { limiter, policy: 'any', timeoutMs: 200, adaptive: { floor: 1, ceiling: 1 } } as const
    const limited = limitFetch(slow, options)
    const first = limited('http://a.example/1')
    await expect(limited('http://a.example/2')).rejects.toMatchObject({
      code: 'ERR_HEADGATE_NO_TURN',
      message: expect.stringContaining('as many calls as it can take (1)'),
    })
    // The call that was not sent used no quota: there is one left.
    const third = limited('http://a.example/3')
    waiting.pop()?.()
    await first
    await expect.poll(() => waiting.length).toBe(1)
    waiting.pop()?.()
    expect((await third).status).toBe(200)
    expect(most).toBe(1)
    expect(() => limitFetch(slow, { ...options, adaptive: { floor: 2, ceiling: 1 } })).toThrow(
      'ceiling: expected a whole number from the floor to 100000; got 1',
    )
  })

  it('limitFetch rejects an unknown policy', () => {
    const limiter = createLimiter({ policies })
    expect(() => limitFetch(fetch, { limiter, policy: 'ap' as 'api' })).toThrow(
      'policy: expected one of api, one',
    )
  })
})

/** Calls as often as it may for so many milliseconds, and reports the outcomes. */
const CALLER = `
  import { Redis } from 'ioredis'
  import { createLimiter, slidingWindowLog } from './dist/index.js'
  import { limitFetch } from './dist/outbound.js'
  import { redisStore } from './dist/redis.js'
  const [port, url, limit, window, forMs] = process.argv.slice(1)
  const client = new Redis(Number(port))
  const limiter = createLimiter({
    store: redisStore(client, { deadlineMs: 5_000 }),
    policies: { api: slidingWindowLog({ limit: Number(limit), window }) },
  })
  const limited = limitFetch(fetch, { limiter, policy: 'api' })
  const until = performance.now() + Number(forMs)
  const statuses = {}
  await Promise.all(Array.from({ length: 20 }, async () => {
    while (performance.now() < until) {
      const { status } = await limited(url)
      statuses[status] = (statuses[status] ?? 0) + 1
    }
  }))
  console.log(JSON.stringify(statuses))
  await limiter.close()
  client.disconnect()
`

describe('four processes that call an API which itself limits', () => {
  const QUOTA = 1_000
  const WINDOW_MS = 10_000
  /** Longer than the other side's window: a call may be in flight for longer than the one whose permit it takes. */
  const OWN_WINDOW = '10350ms'
  const FOR_MS = 11_500

  it(
    'four processes that call an API which itself limits are never rejected, and use at least 95 % of its quota',
    {
      timeout: 180_000,
    },
    () => onTime(useTheQuota),
  )

  async function useTheQuota(): Promise<void> {
    const redis = await startRedis()
    const remote = createLimiter({
      policies: { quota: slidingWindowLog({ limit: QUOTA, window: `${WINDOW_MS}ms` }) },
    })
    const admitted: number[] = []
    let rejected = 0
    const limited = rateLimit({
      limiter: remote,
      policy: 'quota',
      subject: 'user:all',
      onDecision: ({ allowed }) => void (allowed ? admitted.push(performance.now()) : rejected++),
    })
    const server = createServer(limited((_, res) => void res.end('ok')))
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const args = [redis.port, url, QUOTA, OWN_WINDOW, FOR_MS].map(String)
    const callers = Array.from({ length: 4 }, () =>
      spawn(process.execPath, ['--input-type=module', '-e', CALLER, '--', ...args], {
        cwd: join(import.meta.dirname, '..'),
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    )
    const said = await Promise.all(
      callers.map(async ({ stdout }) => JSON.parse(String((await once(stdout, 'data'))[0]))),
    )
    server.close()
    server.closeAllConnections()
    await redis.stop()
    const spanMs = (admitted[QUOTA] as number) - (admitted[0] as number)
    const used = WINDOW_MS / spanMs
    console.info(`rejected ${rejected}, ${(100 * used).toFixed(1)} % of the quota used`)
    expect(rejected).toBe(0)
    expect(said.every(statuses => Object.keys(statuses).join() === '200' && statuses[200] > 0)).toBe(true)
    expect(used).toBeGreaterThanOrEqual(0.95)
  }
})
