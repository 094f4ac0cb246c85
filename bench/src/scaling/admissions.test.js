import { expect, it } from 'vitest'
import { countBetween, mostInAny } from './admissions.js'

it('any interval is looked at, not only those on the clock', () => {
  const admittedUs = Float64Array.of(0, 900, 950, 1_000, 1_050, 1_899, 1_900)
  expect(mostInAny(admittedUs, 1_000)).toBe(5)
  expect(mostInAny(admittedUs, 151)).toBe(4)
  expect(mostInAny(Float64Array.of(), 1_000)).toBe(0)
})

it('an interval has its beginning and not its end', () => {
  expect(countBetween(Float64Array.of(0, 10, 20), 0, 20)).toBe(2)
})
