/** Holds the figures of the README to the runs they are from. */
import { readFileSync } from 'node:fs'
import { expect, it } from 'vitest'

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
const README = read('README.md')
const cellsOf = (line: string): string[] => line.split('|').map(cell => cell.trim())
const rowsOf = (page: string): string[][] =>
  page
    .split('\n')
    .filter(line => line.startsWith('|'))
    .map(cellsOf)

it('speeds on Redis are those of the committed run', () => {
  const measured = new Map(
    rowsOf(read('bench/results/redis.md'))
      .filter(([, , ours]) => ours === 'counter')
      .map(([, against = '', , , times = '']) => [against, times]),
  )
  const shown = rowsOf(README).filter(([, workload = '']) => /^\([a-e]\) /.test(workload))
  expect(shown.length).toBeGreaterThan(2)
  for (const [, workload = '', asSetUp, tuned] of shown) {
    const letter = workload.slice(0, 3)
    expect([asSetUp, tuned], workload).toEqual([
      measured.get(`${letter} fastest peer`),
      measured.get(`${letter} fastest tuned peer`),
    ])
  }
})

it('times while Redis is frozen are those of the committed run', () => {
  const measured = rowsOf(read('docs/reference/faults-peers.md')).filter(([, fault = '']) =>
    fault.startsWith('frozen'),
  )
  expect(measured.length).toBeGreaterThan(2)
  for (const [, , limiter = '', p99, longest] of measured) {
    expect(rowsOf(README), limiter).toContainEqual(['', limiter, p99, longest, ''])
  }
})
