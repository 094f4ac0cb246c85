import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { concurrency, createLimiter, slidingWindowLog } from '../../src/index.ts'
import { redisStore } from '../../src/redis.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { waitUntil } from '../support/wait-until.ts'

const HOLD_FOR = '2s'
const policies = {
  one: concurrency({ limit: 1, holdFor: HOLD_FOR }),
  five: concurrency({ limit: 5, holdFor: HOLD_FOR }),
  both: [slidingWindowLog({ limit: 100, window: '1m' }), concurrency({ limit: 2, holdFor: HOLD_FOR })],
}

let server: RedisProcess
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

function limiterOn(options: Parameters<typeof redisStore>[1] = {}) {
  const client = new Redis({ port: server.port, lazyConnect: true })
  client.on('error', () => {})
  const store = redisStore(client, { deadlineMs: 1_000, logger: SILENT, ...options })
  return createLimiter({ store, policies })
}

const SILENT = { info() {}, warn() {}, error() {} }

/** Takes a place of policy `one` for `user:lost`, reports it, and lives until it is killed. */
const HOLDER = `
  import { Redis } from 'ioredis'
  import { concurrency, createLimiter } from './dist/index.js'
  import { redisStore } from './dist/redis.js'
  const store = redisStore(new Redis(Number(process.argv[1])), { deadlineMs: 5_000 })
  const limiter = createLimiter({ store, policies: { one: concurrency({ limit: 1, holdFor: '${HOLD_FOR}' }) } })
  const decision = await limiter.check('user:lost', { policy: 'one' })
  console.log(decision.allowed)
  setInterval(() => decision.allowed, 1_000)
`

describe('permits shared by processes', () => {
  it('permits are as many as the limit, whichever process holds them', async () => {
    const [one, other] = [limiterOn(), limiterOn()]
    const ask = (limiter: typeof one) => limiter.check('user:shared', { policy: 'five' })
    const decisions = await Promise.all(
      Array.from({ length: 20 }, (_, index) => ask(index % 2 ? one : other)),
    )
    const held = decisions.filter(({ allowed }) => allowed)
    expect(held.length).toBe(5)
    await Promise.all(held.slice(0, 3).map(decision => decision.release()))
    const again = await Promise.all(Array.from({ length: 20 }, (_, index) => ask(index % 2 ? one : other)))
    expect(again.filter(({ allowed }) => allowed).length).toBe(3)
    await one.close()
    await other.close()
  })

  it('permits stay held for longer than holdFor while their request is in flight', async () => {
    const [one, other] = [limiterOn(), limiterOn()]
    const held = await one.check('user:long', { policy: 'one' })
    const until = performance.now() + 3_000
    while (performance.now() < until) {
      expect((await other.peek('user:long', { policy: 'one' })).allowed).toBe(false)
      await new Promise(resolve => setTimeout(resolve, 100))
    }
    await held.release()
    expect((await other.check('user:long', { policy: 'one' })).allowed).toBe(true)
    await one.close()
    await other.close()
  })

  it('permits of a process that is killed come free within holdFor', async () => {
    const limiter = limiterOn()
    const child = spawn(process.execPath, ['--input-type=module', '-e', HOLDER, '--', String(server.port)], {
      cwd: join(import.meta.dirname, '../..'),
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    try {
      const [said] = await once(child.stdout, 'data')
      expect(String(said).trim()).toBe('true')
      expect((await limiter.peek('user:lost', { policy: 'one' })).allowed).toBe(false)
    } finally {
      child.kill('SIGKILL')
    }
    const killedAt = performance.now()
    await waitUntil('the permit is free', async () => {
      return (await limiter.peek('user:lost', { policy: 'one' })).allowed
    })
    expect(performance.now() - killedAt).toBeLessThan(2_500)
    await limiter.close()
  })

  it('permits taken just before Redis freezes are not lost for longer than holdFor', async () => {
    const limiter = limiterOn({ deadlineMs: 30, probeAfterMs: 100, onStoreFailure: 'closed' })
    // Sent, and frozen before the answer: nobody here knows that the permit was taken.
    const asked = limiter.check('user:frozen', { policy: 'one' })
    await new Promise(resolve => setImmediate(resolve))
    process.kill(server.pid, 'SIGSTOP')
    const unknown = await asked
    process.kill(server.pid, 'SIGCONT')
    const thawedAt = performance.now()
    await unknown.release()
    let denied = 0
    await waitUntil('a request is admitted by Redis', async () => {
      const decision = await limiter.check('user:frozen', { policy: 'one' })
      if (!decision.allowed) denied++
      return decision.allowed && decision.source === 'redis'
    })
    expect(performance.now() - thawedAt).toBeLessThan(2_500)
    expect(denied).toBeGreaterThanOrEqual(0)
    await limiter.close()
  })

  it('permits that could not be given back come free within holdFor', async () => {
    const limiter = limiterOn({ deadlineMs: 30, probeAfterMs: 100 })
    const held = await limiter.check('user:stuck', { policy: 'one' })
    process.kill(server.pid, 'SIGSTOP')
    await held.release()
    const other = await limiter.check('user:stuck', { policy: 'one' })
    expect(other.source).toBe('local')
    process.kill(server.pid, 'SIGCONT')
    const thawedAt = performance.now()
    await waitUntil('a request is admitted by Redis', async () => {
      const decision = await limiter.check('user:stuck', { policy: 'one' })
      if (decision.source !== 'redis') await decision.release()
      return decision.allowed && decision.source === 'redis'
    })
    expect(performance.now() - thawedAt).toBeLessThan(2_500)
    await limiter.close()
  })

  it('a denial for want of a permit is not remembered: Redis is asked each time', async () => {
    const [one, other] = [limiterOn(), limiterOn()]
    const held = await one.check('user:again', { policy: 'both' })
    const second = await one.check('user:again', { policy: 'both' })
    expect((await other.check('user:again', { policy: 'both' })).allowed).toBe(false)
    await held.release()
    expect((await other.check('user:again', { policy: 'both' })).allowed).toBe(true)
    await second.release()
    await one.close()
    await other.close()
  })
})
