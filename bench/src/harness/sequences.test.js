import { describe, expect, it } from 'vitest'
import { countOver, createRandom, limitDenying, zipfRanks } from './sequences.js'

describe('sequences', () => {
  it('the same seed gives the same numbers, another seed others, all from 0 to 1', () => {
    const [one, same, other] = [1, 1, 2].map(seed => {
      const random = createRandom(seed)
      return Array.from({ length: 1000 }, random)
    })
    expect(one).toEqual(same)
    expect(one).not.toEqual(other)
    expect(one?.every(number => number >= 0 && number < 1)).toBe(true)
  })

  it('the k-th busiest key asks about 1/k as often as the busiest', () => {
    const { ranks, counts } = zipfRanks(1000, 200_000, createRandom(7))
    expect(ranks.length).toBe(200_000)
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(200_000)
    const [first = 0, second = 0] = counts
    expect(first / second).toBeCloseTo(2, 0)
    expect(first / (counts[9] ?? 0)).toBeGreaterThan(8)
    expect(first / (counts[9] ?? 0)).toBeLessThan(12)
  })

  it('the limit that denies no more than wanted is the least one', () => {
    const counts = [10, 5, 1]
    expect(countOver(counts, 4)).toBe(7)
    expect(limitDenying(counts, 7)).toBe(4)
    expect(limitDenying(counts, 6)).toBe(5)
    expect(limitDenying(counts, 0)).toBe(10)
  })
})
