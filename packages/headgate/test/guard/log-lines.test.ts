/** The log lines when a real Redis goes and comes back. */
import { Writable } from 'node:stream'
import { fastify } from 'fastify'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { afterEach, describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { createLimiter } from '../../src/limiter/limiter.js'
import type { Logger } from '../../src/observe/logger.js'
import { redisStore } from '../../src/store/redis/redis-store.js'
import { keepLines } from '../support/kept-lines.ts'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { waitUntil } from '../support/wait-until.ts'

const cleanUps: (() => Promise<void> | void)[] = []

afterEach(async () => {
  for (const cleanUp of cleanUps.splice(0).reverse()) await cleanUp()
})

async function limiterOn(server: RedisProcess, library: 'ioredis' | 'node-redis', logger: Logger) {
  const client =
    library === 'ioredis'
      ? new Redis({ port: server.port, host: '127.0.0.1', lazyConnect: true })
      : createClient({ url: `redis://127.0.0.1:${server.port}` })
  const store = redisStore(client, { deadlineMs: 200, processes: 3, logger })
  const limiter = createLimiter({ store, policies: { api: slidingWindowLog({ limit: 300, window: '1h' }) } })
  cleanUps.push(() => limiter.close())
  await store.ready()
  return async (): Promise<string> => (await limiter.check('user:1', { policy: 'api' })).source
}

describe.each(['ioredis', 'node-redis'] as const)('a Redis that dies and comes back, with %s', library => {
  it('an outage is logged with what it means for requests, and afterwards with how long and how many', async () => {
    const server = await startRedis()
    cleanUps.push(() => server.stop())
    const { logger, lines } = keepLines()
    const source = await limiterOn(server, library, logger)
    expect(await source()).toBe('redis')
    server.kill('SIGKILL')
    await server.exited
    for (let time = 0; time < 20; time++) expect(await source()).toBe('local')
    const next = await startRedis({ port: server.port })
    cleanUps.push(() => next.stop())
    await waitUntil('Redis decides again', async () => (await source()) === 'redis', { timeoutMs: 10_000 })
    const place = `Redis 127\\.0\\.0\\.1:${server.port}`
    expect(lines.filter(line => line.includes('calls in'))).toEqual([
      expect.stringMatching(
        new RegExp(
          `^warn: ${place} has failed 5 calls in \\d+ ms \\(.+\\): failing over to this process, at 1/3 of each limit, until it answers$`,
        ),
      ),
    ])
    expect(lines.filter(line => line.includes('is back'))).toEqual([
      expect.stringMatching(
        new RegExp(`^info: ${place} is back: not called for [\\d.]+ m?s, \\d+ decisions? made without it$`),
      ),
    ])
  })
})

it('an outage is written by pino as it is, with fields to search for', async () => {
  const written: string[] = []
  const stream = new Writable({
    write(chunk, _encoding, done) {
      written.push(String(chunk))
      done()
    },
  })
  const { log } = fastify({ logger: { stream } })
  const server = await startRedis()
  cleanUps.push(() => server.stop())
  const source = await limiterOn(server, 'ioredis', log)
  server.kill('SIGKILL')
  await server.exited
  for (let time = 0; time < 10; time++) await source()
  const lines = written.map(line => JSON.parse(line) as Record<string, unknown>)
  expect(lines.find(({ event }) => event === 'breaker')).toMatchObject({
    level: 40,
    state: 'open',
    calls: 5,
    failure: 'rejected',
    msg: expect.stringContaining('failing over to this process, at 1/3 of each limit'),
  })
})

it('a store rejects a logger that cannot write', () => {
  const redis = new Redis({ lazyConnect: true })
  expect(() => redisStore(redis, { logger: console.log as never })).toThrow(
    /^logger: expected an object with info, warn and error; got a value of type function$/,
  )
})

it('a store decides while a logger throws', async () => {
  const fail = () => {
    throw new Error('disk full')
  }
  const server = await startRedis()
  cleanUps.push(() => server.stop())
  const source = await limiterOn(server, 'ioredis', { info: fail, warn: fail, error: fail })
  server.kill('SIGKILL')
  await server.exited
  for (let time = 0; time < 10; time++) expect(await source()).toBe('local')
})
