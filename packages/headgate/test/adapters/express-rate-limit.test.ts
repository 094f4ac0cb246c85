import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import express from 'express'
import { MemoryStore, type Options, rateLimit } from 'express-rate-limit'
import { createClient } from 'redis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { RateLimitStore } from '../../src/adapters/express-rate-limit.ts'
import { NamedLimit } from '../../src/check/plan.ts'
import { rateLimitStore } from '../../src/express-rate-limit.ts'
import { memoryStore, type Store, type SubjectOptions } from '../../src/index.ts'
import { redisStore } from '../../src/redis.ts'
import { type ManualClock, manualClock } from '../../src/testing/manual-clock.ts'
import { seededRandom } from '../../src/testing/seeded-random.ts'
import { systemClock } from '../../src/time/clock.ts'
import { changed } from '../support/changed.ts'
import { findFreePort } from '../support/free-port.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'

let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const STORES: readonly [string, () => Store][] = [
  ['in memory', () => memoryStore()],
  ['on Redis', () => redisStore(createClient({ url: redis.url }), { deadlineMs: 2_000 })],
]

function resetMsOf(request: object): number {
  return (request as { rateLimit?: { resetTime?: Date } }).rateLimit?.resetTime?.getTime() ?? 0
}

/** Starts an app with the middleware as its users have it, with only the store replaced. */
async function start(
  store: Store,
  given: Partial<Options> | ((hits: RateLimitStore) => Partial<Options>),
  subject: SubjectOptions = { secret: 'a-secret' },
) {
  const hits = rateLimitStore({ store, subject, name: `test-${Math.random().toString(36).slice(2)}` })
  const options = typeof given === 'function' ? given(hits) : given
  const middleware = rateLimit({
    windowMs: 60_000,
    limit: 2,
    standardHeaders: 'draft-8',
    keyGenerator: request => request.get('x-key') ?? '',
    store: hits,
    ...options,
  })
  const app = express()
  app.use(middleware)
  app.get('/', (request, response) => {
    response.setHeader('x-reset-ms', resetMsOf(request))
    response.status(Number(request.query.status ?? 200)).send('hello')
  })
  const server = app.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const get = async (key: string, query = '') => {
    const response = await fetch(`http://127.0.0.1:${port}/${query}`, { headers: { 'x-key': key } })
    await response.text()
    return response
  }
  const stop = async () => {
    server.closeAllConnections()
    server.close()
    await hits.shutdown?.()
  }
  return { get, middleware, hits, stop }
}

describe.each(STORES)('a store for express-rate-limit, %s', (_, open) => {
  const statuses = async (
    get: (key: string, query?: string) => Promise<Response>,
    key: string,
    queries: string[],
  ) => {
    const found: number[] = []
    for (const query of queries) found.push((await get(key, query)).status)
    return found
  }

  it('a store for express-rate-limit holds the limit of the middleware for each key, and says when to come back', async () => {
    const { get, stop } = await start(open(), {})
    try {
      expect(await statuses(get, '192.0.2.1', ['', '', ''])).toEqual([200, 200, 429])
      expect((await get('192.0.2.2')).headers.get('ratelimit')).toMatch(/r=1; t=60$/)
      const denied = await get('192.0.2.1')
      expect(denied.status).toBe(429)
      expect(Number(denied.headers.get('retry-after'))).toBeGreaterThan(50)
    } finally {
      await stop()
    }
  })

  it('a store for express-rate-limit tells what a key has used, and resets it', async () => {
    const { get, middleware, stop } = await start(open(), {})
    try {
      expect(await middleware.getKey('a-key')).toBeUndefined()
      await statuses(get, 'a-key', ['', '', ''])
      expect((await middleware.getKey('a-key'))?.totalHits).toBe(3)
      await middleware.resetKey('a-key')
      expect(await middleware.getKey('a-key')).toBeUndefined()
      expect((await get('a-key')).status).toBe(200)
    } finally {
      await stop()
    }
  })

  it('failed requests are given back where the middleware skips them, and nothing for those it denied', async () => {
    const { get, stop } = await start(open(), { skipFailedRequests: true })
    try {
      const queries = ['?status=500', '?status=500', '?status=500', '', '', '', '']
      expect(await statuses(get, '2001:db8::/56', queries)).toEqual([500, 500, 500, 200, 200, 429, 429])
    } finally {
      await stop()
    }
  })

  it('a store for express-rate-limit counts for a limit that depends on the request', async () => {
    const limit: Options['limit'] = request => (request.get('x-key') === 'pro' ? 3 : 1)
    const { get, stop } = await start(open(), { limit })
    try {
      expect(await statuses(get, 'pro', ['', '', '', ''])).toEqual([200, 200, 200, 429])
      expect(await statuses(get, 'free', ['', ''])).toEqual([200, 429])
    } finally {
      await stop()
    }
  })
})

it('a store for express-rate-limit rejects an invalid store and an invalid name', () => {
  const wrong = (options: unknown) => () => rateLimitStore(options as { store: Store })
  expect(wrong({ store: {} })).toThrow(expect.objectContaining({ field: 'store' }))
  expect(wrong({ store: memoryStore(), name: 'a:b' })).toThrow(expect.objectContaining({ field: 'name' }))
})

it('a store for express-rate-limit keeps no key that may be a secret in Redis', async () => {
  const { get, stop } = await start(redisStore(createClient({ url: redis.url }), { deadlineMs: 2_000 }), {})
  const client = createClient({ url: redis.url })
  await client.connect()
  try {
    await get('sk_live_51')
    const keys = await client.keys('*')
    expect(keys.length).toBeGreaterThan(0)
    expect(keys.join()).not.toContain('sk_live_51')
  } finally {
    client.destroy()
    await stop()
  }
})

/** The statuses of requests that are this many milliseconds apart. */
async function paced(
  clock: ManualClock,
  get: (key: string) => Promise<Response>,
  gapsMs: readonly number[],
): Promise<readonly { readonly atMs: number; readonly status: number; readonly waitMs: number }[]> {
  const found: { atMs: number; status: number; waitMs: number }[] = []
  for (const gapMs of gapsMs) {
    clock.advanceMs(gapMs)
    const { status, headers } = await get('a-key')
    found.push({ atMs: clock.unixMs(), status, waitMs: Number(headers.get('x-reset-ms')) - clock.unixMs() })
  }
  return found
}

/** Tells the reset time to the millisecond, which the headers round. */
const exactReset: Partial<Options> = {
  handler: (request, response, _next, { statusCode }) => {
    response.setHeader('x-reset-ms', resetMsOf(request)).status(statusCode).send('slow down')
  },
}

function startClock(): ManualClock {
  return manualClock(Date.now() * 1_000)
}

const KINDS: readonly [string, (hits: RateLimitStore, limit: number) => Partial<Options>][] = [
  ['a number', (_, limit) => ({ limit })],
  ['a number, and failures are given back', (_, limit) => ({ limit, skipFailedRequests: true })],
  [
    'a number, and successes are given back',
    (_, limit) => {
      return { limit, skipSuccessfulRequests: true, requestWasSuccessful: () => false }
    },
  ],
  ['a function', (_, limit) => ({ limit: () => limit })],
  ['a function that the store knows of', (hits, limit) => ({ limit: hits.limit(async () => limit) })],
]

async function startKind([, optionsOf]: (typeof KINDS)[number], limit: number, windowMs: number) {
  const clock = startClock()
  const app = await start(memoryStore({ clock }), hits => ({
    windowMs,
    ...exactReset,
    ...optionsOf(hits, limit),
  }))
  return { ...app, clock }
}

describe.each(KINDS)('a limit that is %s', (...kind) => {
  it('requests further apart than the window all pass at a limit of one', async () => {
    const { get, stop, clock } = await startKind(kind, 1, 1_000)
    try {
      const found = await paced(clock, get, Array<number>(10).fill(1_050))
      expect(found.map(({ status }) => status)).toEqual(Array(10).fill(200))
    } finally {
      await stop()
    }
  })

  it('no window has more than the limit, wherever it begins', async () => {
    const { get, stop, clock } = await startKind(kind, 5, 60_000)
    const random = seededRandom(18)
    try {
      const found = await paced(
        clock,
        get,
        Array.from({ length: 150 }, () => Math.floor(random() ** 2 * 40_000)),
      )
      const passed = found.filter(({ status }) => status === 200).map(({ atMs }) => atMs)
      expect(passed.length).toBeGreaterThan(20)
      for (const [index, atMs] of passed.entries()) {
        const sixth = passed[index + 5]
        if (sixth !== undefined) expect(sixth - atMs).toBeGreaterThanOrEqual(60_000)
      }
    } finally {
      await stop()
    }
  })

  it('a reset is ahead, and never further than the window', async () => {
    const { get, stop, clock } = await startKind(kind, 2, 60_000)
    try {
      for (const { waitMs } of await paced(clock, get, [0, 20_000, 30_000, 9_000, 40_000, 1_000]))
        expect([waitMs > 0, waitMs <= 60_000]).toEqual([true, true])
    } finally {
      await stop()
    }
  })
})

describe.each(KINDS.filter(([kind]) => kind !== 'a function'))('a limit that is %s', (...kind) => {
  it('a caller who never pauses is admitted as often as the limit says', async () => {
    const { get, stop, clock } = await startKind(kind, 10, 60_000)
    try {
      const found = await paced(clock, get, Array<number>(120).fill(5_000))
      expect(found.filter(({ status }) => status === 200)).toHaveLength(100)
    } finally {
      await stop()
    }
  })

  it('a denied request is told the moment at which the next one is admitted', async () => {
    const { get, stop, clock } = await startKind(kind, 3, 60_000)
    try {
      const denied = (await paced(clock, get, [0, 7_000, 4_000, 20_000])).at(-1)
      expect(denied).toMatchObject({ status: 429, waitMs: 29_000 })
      const next = await paced(clock, get, [28_999, 1])
      expect(next.map(({ status }) => status)).toEqual([429, 200])
    } finally {
      await stop()
    }
  })
})

it('a denied request is told a window from now where the limit is a function and failures are given back', async () => {
  const clock = startClock()
  const { get, stop } = await start(memoryStore({ clock }), hits => {
    return { ...exactReset, skipFailedRequests: true, limit: hits.limit(() => 1) }
  })
  try {
    const found = await paced(clock, get, [0, 20_000, 40_000])
    expect(found.map(({ status, waitMs }) => [status, waitMs])).toEqual([
      [200, 60_000],
      [429, 60_000],
      [200, 60_000],
    ])
  } finally {
    await stop()
  }
})

it('a hit that is taken back is the one of that request, not an older one', async () => {
  const clock = startClock()
  const { get, stop } = await start(memoryStore({ clock }), { skipFailedRequests: true })
  const statusAfter = async (ms: number, query = '') => {
    clock.advanceMs(ms)
    return (await get('a-key', query)).status
  }
  try {
    expect([await statusAfter(0), await statusAfter(30_000, '?status=500')]).toEqual([200, 500])
    // The first leaves the window now. Had it been given back instead, the second would still count.
    expect([await statusAfter(30_000), await statusAfter(0), await statusAfter(0)]).toEqual([200, 200, 429])
  } finally {
    await stop()
  }
})

/** The errors that the middleware logs. */
function logged() {
  const errors: unknown[] = []
  return { errors, logger: { warn: () => {}, error: (error: unknown) => void errors.push(error) } }
}

it.each([
  ['Infinity, which denies nobody', Number.POSITIVE_INFINITY, [200, 200, 200, 200]],
  ['a fraction, which is not reached by that many', 2.5, [200, 200, 429, 429]],
  ['0, which denies all', 0, [429, 429, 429, 429]],
  ['below 0', -1, [429, 429, 429, 429]],
  ['above what is counted', 1e12, [200, 200, 200, 200]],
  ['the text of a number', '2', [200, 200, 429, 429]],
])('a limit may be %s, as with the store of the middleware', async (_, limit, expected) => {
  const { errors, logger } = logged()
  for (const store of [memoryStore(), new MemoryStore()]) {
    const isOwn = store instanceof MemoryStore
    const options = { limit: limit as number, logger, ...(isOwn && { store }) }
    const { get, stop } = await start(isOwn ? memoryStore() : store, options)
    try {
      const found: number[] = []
      for (let time = 0; time < 4; time++) {
        const { status, headers } = await get('a-key')
        found.push(status)
        if (status === 429) expect(Number(headers.get('retry-after'))).toBeLessThanOrEqual(60)
        expect(headers.get('x-ratelimit-reset')).toMatch(/^\d+$/)
      }
      expect(found).toEqual(expected)
    } finally {
      await stop()
    }
  }
  expect(errors).toEqual([])
})

it.each([
  ['limit', { limit: Number.NaN }, [200, 200, 200]],
  ['limit', { limit: 'many' as unknown as number }, [200, 200, 200]],
  ['windowMs', { windowMs: 367 * 86_400_000 }, [200, 200, 429]],
  ['windowMs', { windowMs: Number.POSITIVE_INFINITY }, [200, 200, 429]],
  ['windowMs', { windowMs: Number.NaN }, [200, 200, 429]],
  ['windowMs', { windowMs: 0.5, limit: 0 }, [429, 429, 429]],
])(
  'an impossible %s is logged when the middleware is made, and fails no request',
  async (field, options, expected) => {
    const { errors, logger } = logged()
    const { get, stop } = await start(memoryStore(), { logger, standardHeaders: false, ...options })
    try {
      expect(errors).toEqual([expect.objectContaining({ code: 'ERR_HEADGATE_INVALID_LIMIT', field })])
      const found: number[] = []
      for (let time = 0; time < 3; time++) found.push((await get('a-key')).status)
      expect(found).toEqual(expected)
      expect(errors).toHaveLength(1)
    } finally {
      await stop()
    }
  },
)

it.each([
  ['an empty text', ''],
  ['undefined', undefined],
  ['null', null],
  ['a number', 42],
])('callers whose key is %s share a budget', async (_, key) => {
  const keyGenerator = () => key as string
  const { get, middleware, stop } = await start(memoryStore(), { keyGenerator, standardHeaders: false })
  try {
    expect([(await get('a')).status, (await get('b')).status, (await get('c')).status]).toEqual([
      200, 200, 429,
    ])
    expect((await middleware.getKey(key as string))?.totalHits).toBe(3)
    await middleware.resetKey(key as string)
    expect((await get('a')).status).toBe(200)
  } finally {
    await stop()
  }
})

describe('while Redis does not answer', () => {
  const unreachable = async (onStoreFailure: 'open' | 'closed' | 'local') => {
    const client = createClient({ url: `redis://127.0.0.1:${await findFreePort()}` }).on('error', () => {})
    return redisStore(client, { onStoreFailure, logger: { info() {}, warn() {}, error() {} } })
  }

  it.each([2, () => 2])('failure mode open lets requests pass', async limit => {
    const { get, stop } = await start(await unreachable('open'), { limit })
    try {
      for (let time = 0; time < 4; time++) expect((await get('a-key')).status).toBe(200)
    } finally {
      await stop()
    }
  })

  it.each([2, () => 2])('failure mode closed rejects them with 503', async limit => {
    const { get, stop } = await start(await unreachable('closed'), { limit })
    try {
      const { status, headers } = await get('a-key')
      expect([status, headers.get('retry-after')]).toEqual([503, '1'])
    } finally {
      await stop()
    }
  })

  it('passOnStoreError lets them pass in failure mode closed', async () => {
    const { errors, logger } = logged()
    const { get, stop } = await start(await unreachable('closed'), { passOnStoreError: true, logger })
    try {
      expect((await get('a-key')).status).toBe(200)
      expect(errors).toEqual([expect.objectContaining({ code: 'ERR_HEADGATE_STORE_UNAVAILABLE' })])
    } finally {
      await stop()
    }
  })

  it.each([2, () => 2])('failure mode local holds the limit in the process', async limit => {
    const { get, stop } = await start(await unreachable('local'), { limit })
    try {
      const found: number[] = []
      for (let time = 0; time < 4; time++) found.push((await get('a-key')).status)
      expect(found).toEqual([200, 200, 429, 429])
    } finally {
      await stop()
    }
  })

  it('each of several processes admits its share of a limit that is a function', async () => {
    const memory = memoryStore()
    // As in a process that is one of two.
    const half = changed(memory, {
      source: 'redis',
      decide(check) {
        check.asked = check.plan.map(
          ({ name, limit }) => new NamedLimit(name, { ...limit, limit: Math.floor(limit.limit / 2) }),
        )
        memory.charge(check, check.asked, systemClock.nowUs())
        check.settle('local')
      },
    })
    const { get, stop } = await start(half, { limit: () => 5 })
    try {
      const found: number[] = []
      for (let time = 0; time < 4; time++) found.push((await get('a-key')).status)
      expect(found).toEqual([200, 200, 429, 429])
    } finally {
      await stop()
    }
  })
})

it('a limit that is a function may be far above what the log holds', async () => {
  const { hits, stop } = await start(memoryStore({ clock: manualClock() }), { limit: () => 5_000 })
  try {
    for (let time = 1; time <= 2_500; time++) {
      expect((await hits.increment('a-key')).totalHits).toBe(time)
    }
    expect((await hits.get?.('a-key'))?.totalHits).toBe(2_500)
  } finally {
    await stop()
  }
})

it('middlewares that share a store are told apart by their names, and closing one leaves the other alone', async () => {
  const store = memoryStore()
  const { errors, logger } = logged()
  const first = await start(store, { logger })
  expect(first.hits.localKeys).toBe(true)
  const second = await start(store, { logger })
  expect([first.hits.localKeys, second.hits.localKeys]).toEqual([false, false])
  try {
    expect([(await first.get('a')).status, (await first.get('a')).status]).toEqual([200, 200])
    expect((await second.get('a')).status).toBe(200)
    await first.hits.shutdown?.()
    expect((await second.get('a')).status).toBe(200)
    expect((await second.get('a')).status).toBe(429)
    expect(errors).toEqual([])
  } finally {
    await first.stop()
    await second.stop()
  }
})

it('a store that was made with no middleware says so', async () => {
  const hits = rateLimitStore({ store: memoryStore() })
  await expect(hits.increment('a')).rejects.toMatchObject({
    code: 'ERR_HEADGATE_INVALID_OPTION',
    field: 'store',
  })
})
