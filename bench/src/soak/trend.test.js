import { expect, it } from 'vitest'
import { trendOf } from './trend.js'

it('a leak of two an hour is found under a sawtooth', () => {
  const points = Array.from({ length: 120 }, (_, index) => ({
    atHours: index / 120,
    value: 100 + (2 * index) / 120 + (index % 7) * 0.2,
  }))
  const { perHour, uncertainty } = trendOf(points)
  expect(Math.abs(perHour - 2)).toBeLessThan(uncertainty)
  expect(uncertainty).toBeLessThan(0.5)
})

it('two points are no trend', () => {
  expect(
    trendOf([
      { atHours: 0, value: 1 },
      { atHours: 1, value: 5 },
    ]).uncertainty,
  ).toBe(Number.POSITIVE_INFINITY)
})
