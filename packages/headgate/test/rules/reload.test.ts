/** A large reload beside requests. The work between two turns of the event loop is counted, not timed. */

import { afterEach, expect, it, vi } from 'vitest'
import { defineConfig } from '../../src/config.js'
import { createLimiter, type RuleLimiter } from '../../src/limiter/limiter.js'
import { memoryControl } from '../../src/store/memory/memory-control.js'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import { systemClock } from '../../src/time/clock.js'
import { changed } from '../support/changed.ts'

afterEach(() => void vi.restoreAllMocks())

function fileOf(rules: number, limit: number) {
  return defineConfig({
    policies: { api: { algorithm: 'sliding-window-log', limit, window: '1m' } },
    default: { policy: 'api' },
    rules: Array.from({ length: rules }, (_, index) => ({
      match: { path: `/things${index}/:id` as const },
      policy: 'api' as const,
    })),
    costs: Object.fromEntries(Array.from({ length: rules }, (_, index) => [`/costs/${index}`, 2])),
  })
}

const limitOf = (limiter: RuleLimiter) => limiter.explain({ subject: 'user:1', path: '/' }).levels[0]?.limits

/** Returns the most calls of `spy` in one turn of the event loop while `work` is in progress. */
async function mostInOneTurn(
  spy: { readonly mock: { readonly calls: readonly unknown[] } },
  work: () => Promise<unknown>,
  onTurn: () => unknown,
): Promise<number> {
  let most = 0
  let before = spy.mock.calls.length
  let isDone = false
  const done = work().finally(() => {
    isDone = true
  })
  while (!isDone) {
    await new Promise(resolve => setImmediate(resolve))
    most = Math.max(most, spy.mock.calls.length - before)
    onTurn()
    before = spy.mock.calls.length
  }
  await done
  return most
}

it('a large file is made ready in slices, and is in force as a whole at the end', async () => {
  const limiter = createLimiter({ config: fileOf(1, 5) })
  const file = fileOf(10_000, 7)
  const seen = new Set<string>()
  const set = vi.spyOn(Map.prototype, 'set')
  const most = await mostInOneTurn(
    set,
    () => limiter.reload(file),
    () => seen.add(limiter.explain({ subject: 'user:1', path: '/things9999/1' }).levels[0]?.rule ?? ''),
  )
  expect(set.mock.calls.length).toBeGreaterThan(20_000)
  // A hundred entries at a time, each of which is put into a few maps.
  expect(most).toBeLessThan(1_000)
  // Decided by the old file in every turn, until the new one takes its place in the last.
  expect(seen.size).toBe(2)
  expect(limiter.counts().reloads).toBe(1)
})

it('the reload that began last wins, whichever is ready first', async () => {
  const limiter = createLimiter({ config: fileOf(1, 5) })
  const large = limiter.reload(fileOf(2_000, 6))
  await limiter.reload(fileOf(1, 7))
  await large
  expect(limitOf(limiter)).toEqual(['sliding-window-log 7 in 1m'])
  const earlier = limiter.reload(fileOf(2_000, 8))
  await Promise.all([earlier, limiter.reload(fileOf(1, 9))])
  expect(limitOf(limiter)).toEqual(['sliding-window-log 9 in 1m'])
})

it('a reload that fails changes nothing, and leaves the one before it to go on', async () => {
  const limiter = createLimiter({ config: fileOf(1, 5) })
  const sound = limiter.reload(fileOf(2_000, 6))
  const moved = { ...fileOf(1, 7), tenant: 'other' }
  const unsound = { ...fileOf(2_000, 8), policies: { api: { limits: [] } } }
  await expect(limiter.reload(moved)).rejects.toMatchObject({
    code: 'ERR_HEADGATE_INVALID_OPTION',
  })
  await expect(limiter.reload(unsound)).rejects.toMatchObject({
    code: 'ERR_HEADGATE_INVALID_POLICY',
  })
  await sound
  expect(limitOf(limiter)).toEqual(['sliding-window-log 6 in 1m'])
})

it('thousands of overrides are read in slices', async () => {
  const control = memoryControl(systemClock)
  const store = changed(memoryStore(), { control })
  for (let index = 0; index < 5_000; index++) {
    const stored = { subject: `user:${index}`, numbers: { minute: 5 }, by: 'ada', reason: 'a sale' }
    await control.putOverride(`subject user:${index}`, JSON.stringify(stored), 3_600_000)
  }
  const limiter = createLimiter({ config: fileOf(1, 5), store })
  const parse = vi.spyOn(JSON, 'parse')
  let found: readonly unknown[] = []
  const read = async () => {
    found = await limiter.overrides.read()
  }
  expect(await mostInOneTurn(parse, read, () => {})).toBeLessThan(500)
  expect(found).toHaveLength(5_000)
})
