import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { mulDivCeil, mulDivFloor } from '../../src/algorithms/exact-fraction.js'

const MAX_UNITS = 2 ** 32 - 1
const MAX_WINDOW_US = 366 * 86_400_000_000

const units = fc.oneof(
  fc.integer({ min: 0, max: MAX_UNITS }),
  fc.integer({ min: MAX_UNITS - 1_000, max: MAX_UNITS }),
  fc.integer({ min: 0, max: 1_000 }),
  fc.integer({ min: 0, max: 32 }).map(bits => 2 ** bits - 1),
)
const us = fc.oneof(
  fc.integer({ min: 1, max: MAX_WINDOW_US }),
  fc.integer({ min: MAX_WINDOW_US - 1_000, max: MAX_WINDOW_US }),
  fc.integer({ min: 1_000, max: 100_000 }),
  fc.integer({ min: 0, max: 44 }).map(bits => 2 ** bits),
)

/** Avoids an assertion library, which would be too slow two hundred thousand times over. */
function same(got: number, exact: bigint): void {
  if (got !== Number(exact)) throw new Error(`expected ${exact}; got ${got}`)
}

describe('a × b ÷ c in whole numbers', () => {
  it('a × b ÷ c rounds down exactly over the whole range', () => {
    fc.assert(
      fc.property(units, us, us, (a, b, c) => {
        const exact = (BigInt(a) * BigInt(b)) / BigInt(c)
        // The engine never asks for more than it has: a quotient that is itself a number of units or microseconds.
        if (exact <= BigInt(Number.MAX_SAFE_INTEGER)) same(mulDivFloor(a, b, c), exact)
      }),
      { numRuns: 200_000 },
    )
  })

  it('a × b ÷ c rounds up exactly for a share of units: b at most c', () => {
    fc.assert(
      fc.property(units, us, us, (a, one, other) => {
        const [b, c] = one <= other ? [one, other] : [other, one]
        same(mulDivCeil(a, b, c), (BigInt(a) * BigInt(b) + BigInt(c) - 1n) / BigInt(c))
      }),
      { numRuns: 200_000 },
    )
  })

  it('a × b ÷ c finds the time at which units have faded: a and c are units, b is the window', () => {
    fc.assert(
      fc.property(units, us, units, (one, windowUs, other) => {
        const [spare, previous] = one <= other ? [one, other] : [other, one]
        if (previous > 0) {
          same(mulDivFloor(spare, windowUs, previous), (BigInt(spare) * BigInt(windowUs)) / BigInt(previous))
        }
      }),
      { numRuns: 200_000 },
    )
  })

  it.each([
    [MAX_UNITS, MAX_WINDOW_US, MAX_WINDOW_US, MAX_UNITS],
    [MAX_UNITS, MAX_WINDOW_US - 1, MAX_WINDOW_US, MAX_UNITS - 1],
    [MAX_UNITS, 1, MAX_WINDOW_US, 0],
    [MAX_UNITS - 1, MAX_WINDOW_US, MAX_UNITS, MAX_WINDOW_US - 7_363],
    [0, MAX_WINDOW_US, 1, 0],
  ])('%i × %i ÷ %i is %i and a rest', (a, b, c, quotient) => {
    expect(mulDivFloor(a, b, c)).toBe(quotient)
    expect(BigInt(quotient)).toBe((BigInt(a) * BigInt(b)) / BigInt(c))
  })
})
