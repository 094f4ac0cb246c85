import { createLimiter, slidingWindowLog, tokenBucket } from 'headgate'
import { defineConfig } from 'headgate/config'
import { isReference, latencyQuantileMs, type Report, referenceOf } from 'headgate/internal'
import { createStatistics } from 'headgate/metrics'
import { describe, expect, it } from 'vitest'

/** Timers whose seconds elapse on command. */
function ticking() {
  let work = (): void => {}
  const keep = (_: number, next: () => void) => {
    work = next
    return () => {}
  }
  return { timers: { after: keep, inBackground: keep }, tick: () => work() }
}

const policies = {
  api: slidingWindowLog({ limit: 10, window: '1m' }),
  pair: [slidingWindowLog({ limit: 2, window: '1m' }), tokenBucket({ capacity: 100, refillPerSecond: 1 })],
}

describe('what a process counts', () => {
  it('a process counts every decision once, by policy and source, however it was asked for', async () => {
    const statistics = createStatistics()
    const limiter = createLimiter({ policies, statistics })
    for (let index = 0; index < 8; index++) await limiter.check('user:1', { policy: 'api' })
    for (let index = 0; index < 4; index++) limiter.checkNow('user:1', { policy: 'api' })
    for (let index = 0; index < 3; index++) await limiter.check('user:1', { policy: 'pair' })
    await limiter.peek('user:1', { policy: 'pair' })
    const { decisions } = statistics.read()
    const shown = decisions.map(({ policy, source, allowed, denied, nearLimit }) => ({
      policy,
      source,
      allowed,
      denied,
      nearLimit,
    }))
    expect(shown).toEqual([
      { policy: 'api', source: 'memory', allowed: 10, denied: 2, nearLimit: 2 },
      { policy: 'pair', source: 'memory', allowed: 2, denied: 1, nearLimit: 1 },
    ])
  })

  it('a limiter without statistics counts nothing, and one with something else is rejected', () => {
    const statistics = createStatistics()
    createLimiter({ policies }).checkNow('user:1', { policy: 'api' })
    expect(statistics.read().decisions).toEqual([])
    const wrong = { read: () => null } as never
    expect(() => createLimiter({ policies, statistics: wrong })).toThrow(
      'statistics: expected what createStatistics() returns',
    )
  })

  it('a process counts about as many latencies as decisions, though few are timed', async () => {
    const statistics = createStatistics()
    const limiter = createLimiter({
      policies: { api: slidingWindowLog({ limit: 1_000_000, window: '1m' }) },
      statistics,
    })
    for (let index = 0; index < 4_000; index++) limiter.checkNow(`user:${index % 7}`, { policy: 'api' })
    const [tally] = statistics.read().decisions
    const counted = tally?.latency.counts.reduce((sum, count) => sum + count, 0) ?? 0
    expect(counted).toBeGreaterThan(3_500)
    expect(counted).toBeLessThan(4_500)
    expect(latencyQuantileMs(tally?.latency.counts ?? [], 0.5)).toBeGreaterThan(0)
  })

  it('ten thousand rules make fifty tallies, and the rest is counted together', async () => {
    const statistics = createStatistics()
    const rules = Array.from({ length: 300 }, (_, index) => ({
      match: { path: `/r${index}` as const },
      policy: 'api' as const,
    }))
    const config = defineConfig({ policies: { api: slidingWindowLog({ limit: 9, window: '1m' }) }, rules })
    const ruled = createLimiter({ config, statistics })
    for (let index = 0; index < 300; index++) await ruled.request({ subject: 'user:1', path: `/r${index}` })
    const { decisions } = statistics.read()
    expect(decisions.length).toBeLessThanOrEqual(52)
    expect(decisions.reduce((sum, { allowed, denied }) => sum + allowed + denied, 0)).toBe(300)
    expect(decisions.find(({ policy }) => policy === 'other')?.denied).toBeGreaterThan(200)
  })
})

describe('a report', () => {
  it('a report says what came since the last one, who was denied most, and some denials', async () => {
    const { timers, tick } = ticking()
    const statistics = createStatistics({ timers })
    const reports: Report[] = []
    statistics.onSecond(report => reports.push(report))
    const limiter = createLimiter({ policies, statistics })
    for (let index = 0; index < 13; index++) limiter.checkNow('user:1', { policy: 'api' })
    for (let index = 0; index < 15; index++) limiter.checkNow('user:2', { policy: 'api' })
    tick()
    limiter.checkNow('user:3', { policy: 'api' })
    tick()
    tick()
    expect(reports.map(({ decisions }) => decisions.map(({ allowed, denied }) => [allowed, denied]))).toEqual(
      [[[20, 8]], [[1, 0]], []],
    )
    expect(reports[0]?.deniedCallers).toEqual([
      { subject: 'user:2', denied: 5, error: 0, policy: 'api', tier: null },
      { subject: 'user:1', denied: 3, error: 0, policy: 'api', tier: null },
    ])
    const first = { subject: 'user:1', policy: 'api', limit: 'api.log-1m', source: 'memory', count: 1 }
    expect(reports[0]?.denials).toHaveLength(8)
    expect(reports[0]?.denials[0]).toMatchObject({ ...first, reason: 'limit-exceeded', method: null })
    expect(reports[1]?.deniedCallers).toEqual([])
  })

  it('a report counts a flood of a million denials nearly right from a sample of a few thousand', () => {
    const { timers, tick } = ticking()
    const statistics = createStatistics({ timers })
    const reports: Report[] = []
    statistics.onSecond(report => reports.push(report))
    const limiter = createLimiter({
      policies: { one: slidingWindowLog({ limit: 1, window: '1h' }) },
      statistics,
    })
    for (let index = 0; index < 200_000; index++) {
      limiter.checkNow(index % 4 === 0 ? 'user:worst' : `user:${index % 1_000}`, { policy: 'one' })
    }
    tick()
    const [worst] = reports[0]?.deniedCallers ?? []
    expect(worst?.subject).toBe('user:worst')
    expect(worst?.denied).toBeGreaterThan(35_000)
    expect((worst?.denied ?? 0) - (worst?.error ?? 0)).toBeLessThan(65_000)
    expect(reports[0]?.deniedCallers.length).toBeLessThanOrEqual(20)
  })
})

it('handles are twelve characters, the same for the same subject, and others for another', () => {
  expect(referenceOf('user:1')).toBe(referenceOf('user:1'))
  const handles = new Set(Array.from({ length: 10_000 }, (_, index) => referenceOf(`user:${index}`)))
  expect(handles.size).toBe(10_000)
  expect([...handles].every(isReference)).toBe(true)
  expect(isReference('user:1')).toBe(false)
})
