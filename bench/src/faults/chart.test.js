import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'
import { waitChart } from './chart.js'

/** @param {string} path */
const read = path => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')

it('the chart of waits while Redis fails shows the figures of the committed run', () => {
  const rows = read('docs/reference/faults-peers.md')
    .split('\n')
    .filter(line => line.startsWith('|'))
    .slice(2)
    .map(line => line.split('|').map(cell => cell.trim()))
  expect(rows.length).toBeGreaterThan(2)
  expect(read('docs/assets/faults.svg')).toBe(waitChart(rows.map(cells => cells.slice(1, -1))))
})
