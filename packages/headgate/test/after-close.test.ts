/** Requests that outlive their limiter: what they settle and release after `close()`. */
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { defineConfig } from '../src/config.ts'
import { concurrency, createLimiter, slidingWindowLog } from '../src/index.ts'
import { redisStore } from '../src/redis.ts'
import { type RedisProcess, startRedis } from './support/redis-process.ts'

const policies = {
  tokens: slidingWindowLog({ limit: 1_000, window: '1h' }),
  one: concurrency({ limit: 1, holdFor: '1h' }),
}

let server: RedisProcess
let clients: Redis[] = []
beforeAll(async () => {
  server = await startRedis()
})
afterEach(() => {
  for (const client of clients) client.disconnect()
  clients = []
})
afterAll(() => server.stop())

function keptLines() {
  const lines: string[] = []
  const say = (_: unknown, message: string) => void lines.push(message)
  return { lines, logger: { info: say, warn: say, error: say } }
}

function storeWith(logger: ReturnType<typeof keptLines>['logger']) {
  const client = new Redis({ port: server.port, lazyConnect: true })
  client.on('error', () => {})
  clients.push(client)
  return redisStore(client, { deadlineMs: 2_000, logger })
}

const MAKE = {
  limiter(logger: ReturnType<typeof keptLines>['logger']) {
    return createLimiter({ store: storeWith(logger), policies, logger })
  },
  ruled(logger: ReturnType<typeof keptLines>['logger']) {
    const config = defineConfig({ policies, default: { policy: 'tokens' } })
    return createLimiter({ config, store: storeWith(logger), logger })
  },
  'limiter that compares'(logger: ReturnType<typeof keptLines>['logger']) {
    const config = defineConfig({ mode: 'compare', policies, default: { policy: 'tokens' } })
    return createLimiter({ config, store: storeWith(logger), logger })
  },
}

describe.each(Object.keys(MAKE) as (keyof typeof MAKE)[])('after a %s was closed', name => {
  const subject = `user:${name.replaceAll(' ', '-')}` as const

  it('settle changes nothing, never rejects, and is warned of once', async () => {
    const { lines, logger } = keptLines()
    const limiter = MAKE[name](logger)
    const reserve = () => limiter.reserve(subject, { policy: 'tokens', cost: 100 })
    const [asEstimated, less, more] = [await reserve(), await reserve(), await reserve()]
    const settledBefore = less.settle(40)
    await settledBefore
    await limiter.close()
    lines.length = 0
    await asEstimated.settle(100)
    expect(lines).toEqual([])
    await less.settle(10)
    await more.settle(150)
    await limiter.settle(more.decision, 160)
    expect(lines).toEqual([
      expect.stringMatching(/^WARN_HEADGATE_SETTLED_AFTER_CLOSE: .*its estimate stands/),
    ])

    const other = createLimiter({ store: storeWith(keptLines().logger), policies })
    expect((await other.peek(subject, { policy: 'tokens' })).remaining).toBe(1_000 - 100 - 40 - 100)
    await other.close()
  })

  it('permits have been given back, and release says nothing', async () => {
    const { lines, logger } = keptLines()
    const limiter = MAKE[name](logger)
    const held = await limiter.check(subject, { policy: 'one' })
    expect(held.isHeld).toBe(true)
    await limiter.close()
    const other = createLimiter({ store: storeWith(keptLines().logger), policies })
    const next = await other.check(subject, { policy: 'one' })
    expect(next.allowed).toBe(true)
    lines.length = 0
    await held.release()
    await held.release()
    // It was another's by then.
    expect((await other.check(subject, { policy: 'one' })).allowed).toBe(false)
    await next.release()
    await other.close()
    expect(lines).toEqual([])
  })
})

it('after a limiter in memory was closed nothing is left to settle, and nobody is warned', async () => {
  const { lines, logger } = keptLines()
  const limiter = createLimiter({ policies, logger })
  const { decision, settle } = await limiter.reserve('user:1', { policy: 'tokens', cost: 100 })
  const held = await limiter.check('user:1', { policy: 'one' })
  await limiter.close()
  await settle(50)
  await limiter.settle(decision, 20)
  await held.release()
  expect(lines).toEqual([])
})
