import { describe, expect, expectTypeOf, it } from 'vitest'
import type { BucketedCounterLimit } from '../../src/algorithms/sliding-window-buckets.js'
import type { CounterLimit } from '../../src/algorithms/sliding-window-counter.js'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.js'
import type { LogLimit } from '../../src/algorithms/sliding-window-log.js'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import type { TokenBucketLimit } from '../../src/algorithms/token-bucket.js'
import { tokenBucket } from '../../src/algorithms/token-bucket.js'
import { HeadgateError } from '../../src/errors/headgate-error.js'

const MAX_UNITS = 4_294_967_295

type Maker = (options: never) => unknown
type Fields = Record<string, unknown>

function errorOf(maker: Maker, options: unknown): HeadgateError {
  try {
    maker(options as never)
  } catch (error) {
    if (error instanceof HeadgateError) return error
    throw error
  }
  throw new Error('expected a rejection')
}

const notUnits: unknown[] = [
  -1,
  0.5,
  1.000001,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  MAX_UNITS + 1,
  2 ** 53,
  1e300,
  '10',
  '0x10',
  '',
  'ten',
  null,
  undefined,
  true,
  {},
  [],
  [10],
  10n,
  Symbol('10'),
  () => 10,
  { valueOf: () => 10 },
]

describe('a limit made of good numbers', () => {
  it('a limit is plain, frozen data that says what it is', () => {
    const limit = slidingWindowLog({ limit: 100, window: '1m' })
    expect(JSON.parse(JSON.stringify(limit))).toEqual({
      algorithm: 'sliding-window-log',
      id: 'log-1m',
      limit: 100,
      windowUs: 60_000_000,
      quota: { limit: 100, windowUs: 60_000_000, burst: null },
    })
    expect(Object.isFrozen(limit)).toBe(true)
    expect(Object.isFrozen(limit.quota)).toBe(true)
  })

  it('a limit reaches from a ban to 2^32 − 1 in a millisecond or in 366 days', () => {
    for (const window of ['1ms', '366d'] as const) {
      for (const limit of [0, 1, MAX_UNITS]) {
        expect(slidingWindowLog({ limit, window }).limit).toBe(limit)
        expect(slidingWindowCounter({ limit, window }).limit).toBe(limit)
        const buckets = window === '1ms' ? 1 : 1_000
        expect(slidingWindowCounter({ limit, window, buckets }).buckets).toBe(buckets)
      }
    }
    expect(tokenBucket({ capacity: MAX_UNITS, refillPerSecond: MAX_UNITS * 1_000 }).limit).toBe(MAX_UNITS)
    expect(tokenBucket({ capacity: 1, refillPerSecond: 2.3e-10 }).refillPerSecond).toBe(2.3e-10)
    expect(tokenBucket({ capacity: 0, refillPerSecond: 1 }).limit).toBe(0)
  })

  it('a limit is named by algorithm and window, never by its quota', () => {
    expect(slidingWindowLog({ limit: 5, window: 60 }).id).toBe('log-1m')
    expect(slidingWindowLog({ limit: 500, window: '60s' }).id).toBe('log-1m')
    expect(slidingWindowCounter({ limit: 5, window: '1h' }).id).toBe('counter-1h')
    expect(slidingWindowCounter({ limit: 5, window: '1h', buckets: 6 }).id).toBe('counter-1h-6')
    expect(tokenBucket({ capacity: 5, refillPerSecond: 1 }).id).toBe('bucket')
    expect(tokenBucket({ capacity: 5, refillPerSecond: 1, name: 'burst' }).id).toBe('burst-bucket')
  })

  it('a limit never shares its name with one of another algorithm or window, whatever it is called', () => {
    const names = [
      'log',
      'counter',
      'bucket',
      'log-1m',
      'counter-1m',
      'counter-1m-6',
      'x',
      '6',
      '1m',
      'x-log-1m',
    ]
    const ids = new Map<string, string>()
    for (const name of [undefined, ...names]) {
      const named = name === undefined ? {} : { name }
      const limits = [
        slidingWindowLog({ limit: 1, window: '1m', ...named }),
        slidingWindowLog({ limit: 1, window: '1h', ...named }),
        slidingWindowCounter({ limit: 1, window: '1m', ...named }),
        slidingWindowCounter({ limit: 1, window: '1m', buckets: 6, ...named }),
        tokenBucket({ capacity: 1, refillPerSecond: 1, ...named }),
      ]
      for (const limit of limits) {
        const kind = `${limit.algorithm.name} ${'windowUs' in limit ? limit.windowUs : ''} ${'buckets' in limit ? limit.buckets : ''}`
        expect(ids.get(limit.id) ?? kind).toBe(kind)
        ids.set(limit.id, kind)
      }
    }
  })

  it('a limit has the type of its algorithm', () => {
    expectTypeOf(slidingWindowLog({ limit: 1, window: '1m' })).toEqualTypeOf<LogLimit>()
    expectTypeOf(slidingWindowCounter({ limit: 1, window: '1m' })).toEqualTypeOf<CounterLimit>()
    expectTypeOf(
      slidingWindowCounter({ limit: 1, window: '1m', buckets: 6 }),
    ).toEqualTypeOf<BucketedCounterLimit>()
    expectTypeOf(tokenBucket({ capacity: 1, refillPerSecond: 1 })).toEqualTypeOf<TokenBucketLimit>()
    // @ts-expect-error a window must have a unit that exists
    expect(() => slidingWindowLog({ limit: 1, window: '1w' })).toThrow(HeadgateError)
    // @ts-expect-error a misspelt option is not an option
    expect(() => slidingWindowLog({ limit: 1, windw: '1m' })).toThrow(HeadgateError)
  })
})

describe('a bad number', () => {
  it.each([
    ['slidingWindowLog', slidingWindowLog, 'limit', { limit: 1, window: '1m' }],
    ['slidingWindowCounter', slidingWindowCounter, 'limit', { limit: 1, window: '1m' }],
    ['slidingWindowCounter', slidingWindowCounter, 'limit', { limit: 1, window: '1m', buckets: 6 }],
    ['tokenBucket', tokenBucket, 'capacity', { capacity: 1, refillPerSecond: 1 }],
  ] as [string, Maker, string, Fields][])(
    '%s rejects a bad number by name: %s %s',
    (_, maker, field, good) => {
      for (const bad of notUnits) {
        const error = errorOf(maker, { ...good, [field]: bad })
        expect(error.code).toBe('ERR_HEADGATE_INVALID_LIMIT')
        expect(error.help).toMatch(/#err_headgate_invalid_limit$/)
        expect(error.message).toContain(`${field}: expected a whole number from 0 to ${MAX_UNITS}; got `)
      }
    },
  )

  it('a bad number of buckets is rejected by name', () => {
    for (const bad of [0, ...notUnits.filter(value => value !== undefined), 1_001]) {
      const error = errorOf(slidingWindowCounter, { limit: 1, window: '1m', buckets: bad })
      expect(error.code).toBe('ERR_HEADGATE_INVALID_LIMIT')
      expect(error.message).toMatch(/^buckets: expected a whole number from 1 to 1000; got ./)
    }
  })

  it('a bad refill is rejected by name', () => {
    const bad = [
      0,
      -1,
      -0,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      MAX_UNITS * 1_000 + 1,
      '1',
      '0x10',
      null,
      undefined,
      {},
      1n,
    ]
    for (const refillPerSecond of bad) {
      const error = errorOf(tokenBucket, { capacity: 1, refillPerSecond })
      expect(error.code).toBe('ERR_HEADGATE_INVALID_LIMIT')
      expect(error.message).toMatch(
        /^refillPerSecond: expected a number above 0 and up to 4294967295000; got ./,
      )
    }
  })

  it.each([
    [1, 5e-324],
    [1, 2.2e-10],
    [MAX_UNITS, 0.9],
  ])('a bucket of %i at %d a second would take centuries to fill', (capacity, refillPerSecond) => {
    const error = errorOf(tokenBucket, { capacity, refillPerSecond })
    expect(error.message).toMatch(
      /^refillPerSecond: expected a rate that fills \d+ tokens within 142 years; got /,
    )
  })
})

describe('a bad option', () => {
  it.each([
    [
      'slidingWindowLog',
      slidingWindowLog,
      { limit: 1, window: '1m' },
      ['limits', 'buckets', 'Window', 'constructor'],
    ],
    ['slidingWindowCounter', slidingWindowCounter, { limit: 1, window: '1m' }, ['bucket', 'windowMs', 'max']],
    [
      'tokenBucket',
      tokenBucket,
      { capacity: 1, refillPerSecond: 1 },
      ['limit', 'window', 'rate', 'toString'],
    ],
  ] as [string, Maker, Fields, string[]][])('%s rejects keys it does not know', (name, maker, good, keys) => {
    for (const key of keys) {
      const error = errorOf(maker, { ...good, [key]: 1 })
      expect(error.code).toBe('ERR_HEADGATE_INVALID_LIMIT')
      expect(error.message).toContain(`${name}.${key}: expected one of `)
    }
    const polluted = JSON.parse(`{"__proto__": 1, ${JSON.stringify(good).slice(1)}`)
    expect(errorOf(maker, polluted).message).toContain(`${name}.__proto__: expected one of `)
  })

  it.each([undefined, null, 1, '100', true, 1n])('%s is not an object of options', options => {
    for (const maker of [slidingWindowLog, slidingWindowCounter, tokenBucket] as Maker[]) {
      expect(errorOf(maker, options).message).toMatch(/: expected an object of options; got /)
    }
  })

  it.each(['', 'a b', 'é', 'a.b', 'a:b', '{x}', 'a\n', 'x'.repeat(33), 5, null, {}, ['a']])(
    'name %j cannot be part of a key or a header',
    name => {
      const error = errorOf(slidingWindowLog, { limit: 1, window: '1m', name })
      expect(error.code).toBe('ERR_HEADGATE_INVALID_LIMIT')
      expect(error.message).toMatch(/^name: expected up to 32 letters, digits, - or _; got /)
    },
  )
})
