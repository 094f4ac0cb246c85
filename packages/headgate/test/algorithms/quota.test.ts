import { describe, expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { createLimiter, memoryStore, quota } from '../../src/index.ts'
import { manualClock } from '../../src/testing/manual-clock.ts'

const DAY_MS = 86_400_000

describe('quota()', () => {
  it.each([
    [{ limit: 1, per: 'month', timeZone: 'Europe/Atlantis' }, /^timeZone: expected a time zone of the IANA/],
    [{ limit: 1, per: 'month', timeZone: '' }, /^timeZone: /],
    [{ limit: 1, per: 'month', timeZone: 7 }, /^timeZone: /],
    [{ limit: 1, per: 'fortnight' }, /^per: expected one of day, week, month, year; got "fortnight"/],
    [{ limit: 1 }, /^per: /],
    [{ limit: 1, per: 'month', anchor: 32 }, /^anchor: expected a whole number from 1 to 31; got 32/],
    [{ limit: 1, per: 'month', anchor: 0 }, /^anchor: /],
    [{ limit: 1, per: 'week', anchor: 'someday' }, /^anchor: expected the day a week begins on/],
    [{ limit: 1, per: 'year', anchor: '02-30' }, /^anchor: expected the date a year begins on/],
    [{ limit: 1, per: 'year', anchor: '13-01' }, /^anchor: /],
    [{ limit: 1, per: 'day', anchor: 6 }, /^anchor: expected nothing/],
    [{ limit: 1.5, per: 'day' }, /^limit: /],
    [{ limit: 1, per: 'day', rollover: {} }, /^rollover\.most: expected a whole number/],
    [{ limit: 1, per: 'day', rollover: 5 }, /^rollover: expected an object with the number most/],
    [{ limit: 1, per: 'day', rollover: { mots: 5 } }, /^rollover\.mots: /],
    [{ limit: 1, per: 'day', overage: 'free' }, /^overage: expected 'count'; got "free"/],
  ])('rejects %j by the name of the field', (options, message) => {
    expect(() => quota(options as never)).toThrow(message)
  })

  it('period, time zone and anchor are part of the id, and the number is not', () => {
    expect(quota({ limit: 5, per: 'month' }).id).toBe(quota({ limit: 6, per: 'month' }).id)
    const ids = [
      quota({ limit: 5, per: 'month' }),
      quota({ limit: 5, per: 'week' }),
      quota({ limit: 5, per: 'month', timeZone: 'Europe/Berlin' }),
      quota({ limit: 5, per: 'month', anchor: 15 }),
    ].map(({ id }) => id)
    expect(ids).toEqual(['quota-month', 'quota-week', 'quota-month-europe_berlin', 'quota-month-15'])
  })

  it('no time zone with a number is taken for another one with an anchor', async () => {
    const fifth = quota({ limit: 5, per: 'month', timeZone: 'Etc/GMT', anchor: 5 })
    const ahead = quota({ limit: 5, per: 'month', timeZone: 'Etc/GMT-5' })
    expect(ahead.id).not.toBe(fifth.id)
    const limiter = createLimiter({
      store: memoryStore({ clock: manualClock() }),
      policies: { fifth, ahead },
    })
    const endOf = async (policy: 'fifth' | 'ahead') =>
      new Date((await limiter.check('user:1', { policy })).resetAt as number).toISOString()
    expect(await endOf('fifth')).toBe('2027-02-05T00:00:00.000Z')
    expect(await endOf('ahead')).toBe('2027-01-31T19:00:00.000Z')
    await limiter.close()
  })

  it('is charged with the rate limits, all or none', async () => {
    const clock = manualClock()
    const policies = { api: [slidingWindowLog({ limit: 2, window: '1s' }), quota({ limit: 3, per: 'day' })] }
    const limiter = createLimiter({ store: memoryStore({ clock }), policies })
    const outcomes: boolean[] = []
    for (let request = 0; request < 6; request++) {
      outcomes.push((await limiter.check('user:1', { policy: 'api' })).allowed)
      clock.advanceMs(400)
    }
    expect(outcomes).toEqual([true, true, false, true, false, false])
    const denied = await limiter.check('user:1', { policy: 'api' })
    expect(denied.binding?.name).toContain('quota-day')
    expect(new Date(denied.resetAt as number).toISOString()).toBe('2027-01-16T00:00:00.000Z')
    await limiter.close()
  })

  it('carries over what was not used, at most so much, to the next period alone', async () => {
    const clock = manualClock()
    const policies = { api: quota({ limit: 10, per: 'day', rollover: { most: 4 } }) }
    const limiter = createLimiter({ store: memoryStore({ clock }), policies })
    const left = async () => (await limiter.peek('user:1', { policy: 'api' })).remaining
    expect(await left()).toBe(10)
    await limiter.check('user:1', { policy: 'api', cost: 3 })
    clock.advanceMs(DAY_MS)
    expect(await left()).toBe(14)
    await limiter.check('user:1', { policy: 'api', cost: 12 })
    expect(await left()).toBe(2)
    clock.advanceMs(DAY_MS)
    expect(await left()).toBe(10)
    await limiter.close()
  })

  it('admits and counts what is beyond the limit with overage', async () => {
    const clock = manualClock()
    const policies = { api: quota({ limit: 2, per: 'day', overage: 'count' }) }
    const limiter = createLimiter({ store: memoryStore({ clock }), policies })
    for (let request = 0; request < 5; request++) {
      expect(await limiter.check('user:1', { policy: 'api' })).toMatchObject({
        allowed: true,
        remaining: Math.max(0, 1 - request),
      })
    }
    await limiter.close()
  })
})
