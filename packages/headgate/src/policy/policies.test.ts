import { describe, expect, it } from 'vitest'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import { tokenBucket } from '../algorithms/token-bucket.js'
import { HeadgateError } from '../errors/headgate-error.js'
import { type PolicyOptions, writtenPolicies } from './policies.js'
import type { TierOptions } from './tier-numbers.js'
import { defaultTiers, tier } from './tiers.js'

const log = slidingWindowLog({ limit: 10, window: '1m' })

const parsePolicies = (policies: Record<string, PolicyOptions>) => writtenPolicies(policies, {}).policies
const parseTiers = (tiers: Record<string, TierOptions>) =>
  writtenPolicies(
    {},
    Object.fromEntries(Object.entries(tiers).map(([name, options]) => [name, tier(options)])),
  ).tiers

function errorOf(act: () => unknown): HeadgateError {
  try {
    act()
  } catch (error) {
    if (error instanceof HeadgateError) return error
    throw error
  }
  throw new Error('expected a rejection')
}
const policyError = (policies: unknown) =>
  errorOf(() => parsePolicies(policies as Record<string, PolicyOptions>))
const tierError = (options: unknown) => errorOf(() => tier(options as TierOptions))

describe('policies', () => {
  it('a policy names each limit after itself and what the limit is', () => {
    const policies = parsePolicies({
      api: [log, slidingWindowCounter({ limit: 9, window: '1h' })],
      login: log,
    })
    expect(policies.get('api')?.limits.map(limit => limit.name)).toEqual(['api.log-1m', 'api.counter-1h'])
    expect(policies.get('login')?.limits.map(limit => limit.name)).toEqual(['login.log-1m'])
    expect(policies.get('login')?.tier).toBeNull()
  })

  it.each(['', 'a b', 'é', 'a.b', 'a:b', 'a\r\nb', '"', '{x}', 'x'.repeat(33)])(
    'policies reject the name %j',
    name => {
      const error = policyError({ [name]: log })
      expect(error.code).toBe('ERR_HEADGATE_INVALID_POLICY')
      expect(error.message).toMatch(/^policies: expected names of up to 32 letters, digits, - or _; got /)
    },
  )

  it("policies reject the name 'tier', under which all tiers keep what was used", () => {
    expect(policyError({ tier: log }).message).toContain("expected a name other than 'tier'")
  })

  it('policies may be named like properties that every object has', () => {
    const names = ['__proto__', 'constructor', 'toString', 'hasOwnProperty', '0']
    const policies = parsePolicies(Object.fromEntries(names.map(name => [name, log])))
    expect([...policies.keys()].toSorted()).toEqual(names.toSorted())
    expect(policies.get('valueOf')).toBeUndefined()
  })

  it('a policy rejects two limits that would share a state, and says how to tell them apart', () => {
    const error = policyError({ api: [log, slidingWindowLog({ limit: 20, window: '60s' })] })
    expect(error.code).toBe('ERR_HEADGATE_INVALID_POLICY')
    expect(error.message).toMatch(
      /^policies\.api\[1\]: expected a limit unlike the others.*'log-1m' is taken/,
    )
    const named = slidingWindowLog({ limit: 20, window: '1m', name: 'second' })
    expect(parsePolicies({ api: [log, named] }).get('api')?.limits).toHaveLength(2)
    const bucket = tokenBucket({ capacity: 1, refillPerSecond: 1 })
    expect(
      policyError({ api: [bucket, tokenBucket({ capacity: 2, refillPerSecond: 2 })] }).message,
    ).toContain('[1]')
  })

  it.each([
    undefined,
    null,
    5,
    'log',
    {},
    { limit: 10, window: '1m' },
    { algorithm: 'fixed-window', id: 'x' },
    { algorithm: 'constructor', id: 'x' },
    { algorithm: '__proto__', id: 'x' },
    { algorithm: 'token-bucket' },
    [log, null],
    [[log]],
    slidingWindowLog,
  ])('a policy rejects case %#, which no maker of limits made', options => {
    const error = policyError({ api: options })
    expect(error.code).toBe('ERR_HEADGATE_INVALID_POLICY')
    expect(error.message).toMatch(
      /^policies\.api(\[\d\])?: expected a limit made by slidingWindowLog\(\) and its like; got /,
    )
  })

  it.each([
    [{ limit: log, mode: 'shadow' }, 'policies.api.limit', 'limits'],
    [{ limit: log }, 'policies.api.limit', 'limits'],
    [{ mode: 'shadow' }, 'policies.api.limits', undefined],
    [{ limits: undefined }, 'policies.api.limits', undefined],
    [{ limit: 5, window: '1m' }, 'policies.api', undefined],
    [[{ limit: 5, window: '1m' }], 'policies.api[0]', undefined],
  ])('a policy rejects case %# by the field that is wrong', (options, field, suggestion) => {
    expect(policyError({ api: options })).toMatchObject({ field, suggestion })
  })

  it('a policy rejects an empty list', () => {
    expect(policyError({ api: [] }).message).toMatch(
      /^policies\.api: expected at least one limit; got an array of 0/,
    )
  })
})

describe('the default tiers', () => {
  const minute = 60_000_000
  /** The published table; null is unlimited. */
  const table: [keyof typeof defaultTiers, number, number | null, number | null, number][] = [
    ['anonymous', 10, 100, 1_000, 2],
    ['free', 30, 500, 5_000, 2],
    ['pro', 100, 2_000, 50_000, 3],
    ['enterprise', 500, 10_000, null, 5],
    ['internal', 1_000, null, null, 1],
  ]

  it('the default tiers are these five and no others', () => {
    expect(Object.keys(defaultTiers)).toEqual(table.map(([tier]) => tier))
  })

  it.each(table)(
    'the default tier %s has %i a minute, %s an hour, %s a day, burst %i×',
    (tier, perMinute, perHour, perDay, burst) => {
      const limits = parseTiers(defaultTiers).get(tier)?.limits ?? []
      const expected: object[] = [
        { algorithm: { name: 'sliding-window-log' }, limit: perMinute * burst, windowUs: minute },
      ]
      if (burst > 1)
        expected.push({
          algorithm: { name: 'token-bucket' },
          limit: perMinute * burst,
          refillPerSecond: perMinute / 60,
        })
      if (perHour !== null)
        expected.push({
          algorithm: { name: 'sliding-window-counter' },
          limit: perHour,
          windowUs: 60 * minute,
        })
      if (perDay !== null)
        expected.push({
          algorithm: { name: 'sliding-window-counter' },
          limit: perDay,
          windowUs: 1_440 * minute,
        })
      expect(limits.map(({ limit }) => limit)).toMatchObject(expected)
      expect(limits).toHaveLength(expected.length)
      const advertised = { limit: perMinute, windowUs: minute, burst: burst > 1 ? perMinute * burst : null }
      expect(limits[0]?.limit.quota).toEqual(advertised)
    },
  )

  it('tiers keep their state under shared names, so that an upgrade keeps what was used', () => {
    const tiers = parseTiers(defaultTiers)
    const names = (tier: string) => tiers.get(tier)?.limits.map(limit => limit.name)
    expect(names('free')).toEqual(['tier.log-1m', 'tier.bucket', 'tier.counter-1h', 'tier.counter-1d'])
    expect(names('pro')).toEqual(names('free'))
    expect(names('internal')).toEqual(['tier.log-1m'])
  })
})

describe('a tier', () => {
  it('a tier without numbers, or with unlimited ones, limits nothing', () => {
    expect(parseTiers({ vip: {} }).get('vip')?.limits).toEqual([])
    expect(parseTiers({ vip: { minute: 'unlimited', hour: 'unlimited' } }).get('vip')?.limits).toEqual([])
  })

  it('a tier of 0 a minute is a ban, with or without burst', () => {
    for (const tier of [{ minute: 0 }, { minute: 0, burst: 2 }]) {
      const limits = parseTiers({ banned: tier }).get('banned')?.limits ?? []
      expect(limits.map(({ limit }) => limit.limit)).toEqual([0])
    }
  })

  it('a tier may have a fractional burst that gives a whole number', () => {
    const atOnce = (minute: number, burst: number) =>
      parseTiers({ t: { minute, burst } }).get('t')?.limits[0]?.limit.limit
    expect(atOnce(10, 1.5)).toBe(15)
    expect(atOnce(100, 1.1)).toBe(110)
    expect(atOnce(10, 1)).toBe(10)
  })

  it.each([undefined, null, 30, '30', 'unlimited', true, [30], 30n, () => 30])(
    'a tier that is not an object (%s) is rejected: it would otherwise limit nothing',
    tier => {
      const error = tierError(tier)
      expect(error.code).toBe('ERR_HEADGATE_INVALID_POLICY')
      expect(error.message).toMatch(
        /^tier options: expected an object of minute, hour, day, month, burst, priority; got ./,
      )
    },
  )

  const notUnits = [
    -1,
    0.5,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    4_294_967_296,
    '10',
    '0x10',
    'unlimted',
    null,
    {},
    [10],
    10n,
  ]
  it.each(['minute', 'hour', 'day'])('a tier rejects a bad %s by name, with burst and without', field => {
    for (const bad of notUnits) {
      for (const burst of field === 'minute' ? [{}, { burst: 2 }] : [{}]) {
        const error = tierError({ [field]: bad, ...burst })
        expect(error.code).toBe('ERR_HEADGATE_INVALID_LIMIT')
        expect(error.message).toMatch(
          new RegExp(`^tier ${field}: expected a whole number from 0 to 4294967295; got `),
        )
      }
    }
  })

  it('a tier rejects a bad burst by name', () => {
    const bad = [0, 0.5, -1, 1.25, Number.NaN, Number.POSITIVE_INFINITY, '2', null, {}, 1e9]
    for (const burst of bad) {
      const error = tierError({ minute: 10, burst })
      expect(error.code).toBe('ERR_HEADGATE_INVALID_POLICY')
      expect(error.message).toMatch(/^tier burst: expected a number of at least 1 that gives a whole number/)
    }
    expect(tierError({ burst: 2 }).message).toMatch(/^tier burst: expected a minute limit to multiply; got 2/)
    expect(tierError({ minute: 'unlimited', burst: 2 }).message).toMatch(/^tier burst: /)
  })

  it('a tier rejects fields it does not know, and names it cannot keep', () => {
    expect(tierError({ minutes: 10 }).message).toMatch(
      /^tier minutes: expected one of minute, hour, day, month, burst/,
    )
    expect(tierError(JSON.parse('{"__proto__": 1}')).message).toMatch(/^tier __proto__: expected one of /)
    expect(errorOf(() => writtenPolicies({}, { free: { minute: 1 } as never })).message).toBe(
      'tiers.free: expected a tier made by tier(); got a value of type object',
    )
    expect(errorOf(() => parseTiers({ 'a b': {} })).message).toMatch(/^tiers: expected names of up to 32/)
  })
})
