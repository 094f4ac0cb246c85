import fc from 'fast-check'
import { describe, expect, expectTypeOf, it } from 'vitest'
import { type Duration, formatDurationUs, parseDurationUs } from '../../src/algorithms/durations.js'
import { HeadgateError } from '../../src/errors/headgate-error.js'

const DAY_US = 86_400_000_000
const MAX_US = 366 * DAY_US

function errorOf(value: unknown): HeadgateError {
  try {
    parseDurationUs(value, 'window')
  } catch (error) {
    if (error instanceof HeadgateError) return error
    throw error
  }
  throw new Error(`expected ${String(value)} to be rejected`)
}

describe('a duration', () => {
  it.each([
    ['1ms', 1_000],
    ['1.5ms', 1_500],
    ['500ms', 500_000],
    ['0.1s', 100_000],
    ['1.001s', 1_001_000],
    ['10s', 10_000_000],
    ['1m', 60_000_000],
    ['0.7m', 42_000_000],
    ['1h', 3_600_000_000],
    ['1d', DAY_US],
    ['366d', MAX_US],
    [60, 60_000_000],
    [0.001, 1_000],
    [1.001, 1_001_000],
    [0.1, 100_000],
    [31_622_400, MAX_US],
  ] as [Duration, number][])('%s is %i µs', (duration, us) => {
    expect(parseDurationUs(duration, 'window')).toBe(us)
  })

  it('a duration may be any whole number of milliseconds, as a number of seconds or in words', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 366 * 86_400_000 }), ms => {
        expect(parseDurationUs(ms / 1_000, 'window')).toBe(ms * 1_000)
        expect(parseDurationUs(`${ms}ms`, 'window')).toBe(ms * 1_000)
      }),
      { numRuns: 5_000 },
    )
  })

  it('formatting a duration and parsing it again gives the same duration', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 366 * 86_400_000 }), ms => {
        const text = formatDurationUs(ms * 1_000)
        expect(text).toMatch(/^\d+(ms|s|m|h|d)$/)
        expect(parseDurationUs(text, 'window')).toBe(ms * 1_000)
      }),
      { numRuns: 2_000 },
    )
    expect(formatDurationUs(60_000_000)).toBe('1m')
    expect(formatDurationUs(90_000_000)).toBe('90s')
    expect(formatDurationUs(1_500)).toBe('1500us')
  })

  it('different durations are written differently', () => {
    const texts = new Set<string>()
    for (let us = 1_000; us < 101_000; us++) texts.add(formatDurationUs(us))
    expect(texts.size).toBe(100_000)
  })

  const rejected: unknown[] = [
    0,
    -1,
    -0.5,
    0.0009,
    0.0000015,
    31_622_400.001,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
    Number.MAX_VALUE,
    5e-324,
    2 ** 53,
    '',
    '1',
    '60',
    'm',
    '1 m',
    ' 1m',
    '1m ',
    '1m\n',
    '-1m',
    '+1m',
    '1M',
    '1w',
    '1min',
    '1e3s',
    '0x10s',
    '1,5s',
    '1_000s',
    '.5s',
    '1.s',
    '0s',
    '0.5ms',
    '1.0005ms',
    '367d',
    '999999999999d',
    '9999999999999s',
    'Infinitys',
    'NaNs',
    '１m',
    '1m30s',
    null,
    undefined,
    true,
    {},
    [],
    ['1m'],
    60n,
    Symbol('1m'),
    () => '1m',
    { valueOf: () => 60 },
    { toString: () => '1m' },
    new Date(60),
  ]
  it.each(rejected.map(value => [value]))('a value that is not a duration is rejected: case %#', value => {
    const error = errorOf(value)
    expect(error.code).toBe('ERR_HEADGATE_INVALID_LIMIT')
    expect(error.message).toMatch(/^window: expected a duration from '1ms' to '366d'.*; got ./)
  })

  it('the error about a duration says what came, but never a long text', () => {
    expect(errorOf('1w').message).toContain('got "1w"')
    expect(errorOf(-1).message).toContain('got -1')
    expect(errorOf('x'.repeat(500)).message).toContain('got a string of 500 characters')
  })

  it('a duration with a unit that does not exist does not compile', () => {
    expectTypeOf<'1m'>().toExtend<Duration>()
    expectTypeOf<'500ms'>().toExtend<Duration>()
    expectTypeOf<'1.5h'>().toExtend<Duration>()
    expectTypeOf<60>().toExtend<Duration>()
    expectTypeOf<'1w'>().not.toExtend<Duration>()
    expectTypeOf<'1'>().not.toExtend<Duration>()
    expectTypeOf<'one minute'>().not.toExtend<Duration>()
    expectTypeOf<string>().not.toExtend<Duration>()
  })
})
