/** Tests the page that shows what other limits would have done to a sample of callers. */
import { createLimiter, slidingWindowLog } from 'headgate'
import { defineConfig } from 'headgate/config'
import type { Arrival } from 'headgate/internal'
import { createStatistics } from 'headgate/metrics'
import { describe, expect, it } from 'vitest'
import { playWhatIf } from '../src/observe/what-if.js'

const limits = (limit: number) => ({ algorithm: 'sliding-window-log' as const, limit, window: '1m' as const })
const arrival = (subject: string, atMs: number): Arrival => ({
  subject,
  policy: 'api',
  tier: null,
  atMs,
  cost: 1,
  denied: false,
})

describe('what if', () => {
  it('what-if plays the arrivals at their times', async () => {
    const arrivals = [0, 1_000, 2_000, 61_000].map(atMs => arrival('user:1', atMs))
    const played = await playWhatIf({ arrivals, share: 1 }, () => true, limits(2))
    expect(played).toMatchObject({
      sample: { subjects: 1, requests: 4, share: 1, fromMs: 0, toMs: 61_000 },
      actual: { denied: 0, rate: 0 },
      whatIf: { denied: 1, rate: 0.25, rateLow: 0.25, rateHigh: 0.25, subjectsDenied: 1 },
    })
  })

  it('what-if is null where nobody asked, and rejects what is no limit', async () => {
    expect(await playWhatIf({ arrivals: [], share: 1 }, () => true, limits(2))).toBeNull()
    await expect(playWhatIf({ arrivals: [], share: 1 }, () => true, limits(-1))).rejects.toThrow('limit')
  })

  it('the true rate is within the interval of what-if, from a share of ten thousand callers', async () => {
    let atMs = 1_000_000
    const clock = { nowUs: () => atMs * 1000, unixMs: () => atMs }
    const statistics = createStatistics({ sampleArrivals: true, clock })
    const policies = { api: slidingWindowLog({ limit: 1_000, window: '1m' }) }
    const limiter = createLimiter({
      config: defineConfig({ policies, default: { policy: 'api' } }),
      statistics,
      clock,
    })
    // Caller n asks n % 7 times: beyond three a minute they are denied.
    let [requests, denied] = [0, 0]
    for (let caller = 0; caller < 10_000; caller++) {
      for (let time = 0; time < caller % 7; time++) {
        await limiter.request({ subject: `user:${caller}` })
        requests++
        if (time >= 3) denied++
      }
      atMs++
    }
    const sample = statistics.arrivals()
    expect(sample.share).toBeLessThan(0.1)
    expect(sample.arrivals.length).toBeLessThanOrEqual(20_000)
    const played = await playWhatIf(sample, () => true, limits(3))
    expect(played?.sample.subjects).toBeGreaterThan(100)
    expect(played?.whatIf.rateLow).toBeLessThan(denied / requests)
    expect(played?.whatIf.rateHigh).toBeGreaterThan(denied / requests)
    expect((played?.whatIf.rateHigh ?? 1) - (played?.whatIf.rateLow ?? 0)).toBeLessThan(0.2)
    await limiter.close()
  })

  it('nothing is sampled where that was not asked for', async () => {
    const statistics = createStatistics()
    const policies = { api: slidingWindowLog({ limit: 1, window: '1m' }) }
    const limiter = createLimiter({
      config: defineConfig({ policies, default: { policy: 'api' } }),
      statistics,
    })
    await limiter.request({ subject: 'user:1' })
    expect(statistics.arrivals()).toEqual({ arrivals: [], share: 1 })
    await limiter.close()
  })
})
