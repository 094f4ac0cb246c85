import { expect, it } from 'vitest'
import { formatTable, replaceSection } from './page.js'
import { interleave } from './rounds.js'
import { quantile, ratioOf, spreadOf } from './stats.js'

it('a spread is the median and the middle half', () => {
  expect(spreadOf([5, 1, 4, 2, 3])).toEqual({ median: 3, low: 2, high: 4 })
  expect(spreadOf([1, 2])).toEqual({ median: 1.5, low: 1.25, high: 1.75 })
  expect(quantile([1, 2, 3, 4], 1)).toBe(4)
})

it('ratios are taken within a round, so a slow phase cancels out', () => {
  expect(ratioOf([200, 20, 2], [100, 10, 1])).toEqual({ median: 2, low: 2, high: 2 })
})

it('all contestants run once in every round, each round starting with another', async () => {
  /** @type {string[]} */
  const order = []
  const contestants = new Map(['a', 'b', 'c'].map(name => [name, async () => order.push(name)]))
  const results = await interleave(contestants, 3)
  expect(order.join('')).toBe('abcbcacab')
  expect([...results.values()].map(all => all.length)).toEqual([3, 3, 3])
})

it('a section is replaced between its markers, and the rest of the page stays', () => {
  const page = 'before\n<!-- bench:x -->\nold\n<!-- /bench:x -->\nafter'
  expect(replaceSection(page, 'x', 'new')).toBe('before\n<!-- bench:x -->\n\nnew\n\n<!-- /bench:x -->\nafter')
  expect(replaceSection(page, 'y', 'new')).toBe(undefined)
  expect(formatTable({ head: ['', 'n'], rows: [['row', '12']] })).toBe(
    '|     |   n |\n| --- | --: |\n| row |  12 |',
  )
})
