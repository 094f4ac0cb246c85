/** The fake timers of test runners, and a clock that is passed once, move limits. */
import { createServer, type RequestListener } from 'node:http'
import express from 'express'
import { afterEach, expect, it, vi } from 'vitest'
import { rateLimit } from '../src/express.ts'
import { createLimiter, memoryStore, slidingWindowLog, tokenBucket } from '../src/index.ts'
import { manualClock } from '../src/testing/index.ts'
import { listening } from './adapters/listening.ts'

afterEach(() => void vi.useRealTimers())

const allowed = async (limiter: ReturnType<typeof made>, policy: 'log' | 'bucket') =>
  (await limiter.check('user:1', { policy })).allowed

function made(more: object = {}) {
  return createLimiter({
    policies: {
      log: slidingWindowLog({ limit: 1, window: '1m' }),
      bucket: tokenBucket({ capacity: 1, refillPerSecond: 0.1 }),
    },
    ...more,
  })
}

it('fake timers move the limits of a limiter that was made before them, or after', async () => {
  const before = made()
  vi.useFakeTimers()
  for (const limiter of [before, made()]) {
    for (const [policy, waitMs] of [
      ['log', 60_000],
      ['bucket', 10_000],
    ] as const) {
      expect([await allowed(limiter, policy), await allowed(limiter, policy)]).toEqual([true, false])
      vi.advanceTimersByTime(waitMs - 1)
      expect(await allowed(limiter, policy)).toBe(false)
      vi.advanceTimersByTime(1)
      expect(await allowed(limiter, policy)).toBe(true)
    }
  }
})

it('fake timers that begin while a limit is used up neither free nor lengthen it', async () => {
  const limiter = made()
  await allowed(limiter, 'log')
  vi.useFakeTimers()
  expect(await allowed(limiter, 'log')).toBe(false)
  vi.setSystemTime(Date.now() + 60_001)
  expect(await allowed(limiter, 'log')).toBe(true)
})

it('fake timers move a limit in one line', async () => {
  const app = express().use(rateLimit({ limit: 1, window: '1m' }))
  app.use((_, res) => void res.send('hello'))
  const server = await listening(createServer(app as RequestListener))
  const ask = async () => (await fetch(server.url)).status
  try {
    vi.useFakeTimers({ toFake: ['Date'] })
    expect([await ask(), await ask()]).toEqual([200, 429])
    vi.setSystemTime(Date.now() + 60_000)
    expect(await ask()).toBe(200)
  } finally {
    await server.close()
  }
})

it('a clock is passed once: to the limiter, or to its store', async () => {
  for (const pass of [
    (clock: ReturnType<typeof manualClock>) => ({ clock }),
    (clock: ReturnType<typeof manualClock>) => ({ store: memoryStore({ clock }) }),
  ]) {
    const clock = manualClock()
    const limiter = made(pass(clock))
    expect([await allowed(limiter, 'log'), await allowed(limiter, 'log')]).toEqual([true, false])
    clock.advanceMs(60_000)
    expect(await allowed(limiter, 'log')).toBe(true)
  }
})
