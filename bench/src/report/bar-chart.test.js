import { expect, it } from 'vitest'
import { barChart } from './bar-chart.js'

const GROUPS = [
  {
    title: 'a & b',
    bars: [
      { label: 'ours', value: 200, text: '200 k', ours: true },
      { label: '<theirs>', value: 50, text: '50 k', ours: false },
    ],
  },
]

/** @param {string} svg @param {string} kind */
function widthOf(svg, kind) {
  return Number(new RegExp(`class="${kind}"[^>]* width="(\\d+)"`).exec(svg)?.[1])
}

it('bars are as long as their values', () => {
  const svg = barChart('title', GROUPS)
  expect(widthOf(svg, 'ours') / widthOf(svg, 'other')).toBeCloseTo(4, 1)
})

it('text is escaped, and there are colours for a dark page', () => {
  const svg = barChart('title', GROUPS)
  expect(svg).toContain('a &amp; b')
  expect(svg).toContain('&lt;theirs&gt;')
  expect(svg).toContain('prefers-color-scheme: dark')
})

it('the same figures give the same bytes', () => {
  expect(barChart('title', GROUPS)).toBe(barChart('title', GROUPS))
})
