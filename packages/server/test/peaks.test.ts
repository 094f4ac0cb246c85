import { expect, it } from 'vitest'
import { Peaks } from '../src/simulate/peaks.js'

it('the suggested limits are the lowest that deny no more than their share of callers', () => {
  const peaks = new Peaks()
  // Caller n asks n times within a minute, and once more when the minute is over.
  for (let caller = 1; caller <= 1_000; caller++) {
    for (let times = 0; times < caller; times++) peaks.add(`user:${caller}`, times)
    peaks.add(`user:${caller}`, 60_000)
  }
  expect(peaks.suggest()).toEqual([
    { share: 0.001, limitPerMinute: 999 },
    { share: 0.01, limitPerMinute: 990 },
  ])
  expect(new Peaks().suggest()).toEqual([])
})
