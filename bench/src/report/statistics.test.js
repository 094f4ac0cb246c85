import { expect, it } from 'vitest'
import { ratioOf, spreadOf } from './statistics.js'

it('the median lies in the middle, the quartiles around the middle half', () => {
  expect(spreadOf([5, 1, 3])).toEqual({ median: 3, q1: 2, q3: 4 })
  expect(spreadOf([4, 1, 2, 3])).toEqual({ median: 2.5, q1: 1.75, q3: 3.25 })
  expect(spreadOf([7])).toEqual({ median: 7, q1: 7, q3: 7 })
})

it('ratios are taken within a round, so that a slow round does not count', () => {
  expect(ratioOf([200, 20, 400], [100, 10, 200])).toEqual({ median: 2, q1: 2, q3: 2 })
})
