/**
 * A cluster rejects a script with TRYAGAIN while its keys are moving: it is sent again, for as long as the call may
 * take.
 */
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { createLimiter, slidingWindowLog } from '../../src/index.js'
import { type RedisConnection, redisStore } from '../../src/redis.js'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'

const DEADLINE_MS = 100
const TRYAGAIN = 'TRYAGAIN Multiple keys request during rehashing of slot'

let server: RedisProcess
let client: Redis
beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
})
afterAll(async () => {
  client?.disconnect()
  await server?.stop()
})

/** Creates a connection to a real Redis that rejects some calls, and records when it was asked. */
function movingSlots() {
  const state = { reject: 0, askedAtMs: [] as number[] }
  const rejected = <Result>(ask: () => Promise<Result>): Promise<Result> => {
    state.askedAtMs.push(performance.now())
    return state.reject-- > 0 ? Promise.reject(new Error(TRYAGAIN)) : ask()
  }
  const connection: RedisConnection = {
    cluster: true,
    evalsha: (sha, keys, args) => rejected(() => client.evalsha(sha, keys.length, ...keys, ...args)),
    eval: (text, keys, args) => rejected(() => client.eval(text, keys.length, ...keys, ...args)),
  }
  const store = redisStore(connection, { deadlineMs: DEADLINE_MS, processes: 1 })
  const limiter = createLimiter({ store, policies: { api: slidingWindowLog({ limit: 10, window: '1m' }) } })
  return { state, limiter, store }
}

it('a question that is rejected a few times is decided by Redis, and charged once', async () => {
  const { state, limiter, store } = movingSlots()
  await store.ready()
  state.reject = 3
  expect(await limiter.check('user:1', { policy: 'api' })).toMatchObject({ source: 'redis', remaining: 9 })
  await limiter.close()
})

it('a question that is rejected to the end is decided without Redis at the deadline, and not sent again after it', async () => {
  const { state, limiter, store } = movingSlots()
  await store.ready()
  state.reject = Number.POSITIVE_INFINITY
  const beganAtMs = performance.now()
  state.askedAtMs.length = 0
  const decision = await limiter.check('user:2', { policy: 'api' })
  const decidedAtMs = performance.now()
  expect(decision).toMatchObject({ allowed: true, source: 'local' })
  await limiter.close()
  // Not counting its own probes, which ask again and are rejected as quickly.
  const ofTheCall = state.askedAtMs.filter(atMs => atMs - beganAtMs <= DEADLINE_MS)
  expect(ofTheCall.length).toBeGreaterThan(1)
  expect(ofTheCall.length).toBeLessThanOrEqual(DEADLINE_MS / 3 + 5)
  // A busy machine may notice the deadline late, but nothing is sent once it has decided.
  expect(state.askedAtMs.filter(atMs => atMs > decidedAtMs)).toEqual([])
})
