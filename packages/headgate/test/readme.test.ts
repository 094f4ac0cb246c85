/** Runs the first programs of the READMEs, and compares their figures with the runs they are from. */
import { readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import type { Decision } from '../src/decision/decision.ts'
import { runShownAs } from './support/shown-program.ts'

const read = (path: string): string => readFileSync(new URL(`../../../${path}`, import.meta.url), 'utf8')
const README = read('README.md')
const cellsOf = (line: string): string[] => line.split('|').map(cell => cell.trim())
const rowsOf = (page: string): string[][] =>
  page
    .split('\n')
    .filter(line => line.startsWith('|'))
    .map(cellsOf)

/** Programs that people copy first: a server that listens. */
it.each(['README.md', 'packages/headgate/README.md', 'docs/guide/quickstart.md'])(
  'the first program of %s lets five requests pass',
  async page => {
    process.env.PORT = '0'
    const { server } = await runShownAs<{ server: Server }>(page, 'npm install', 'server')
    if (!server.listening) await new Promise(resolve => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const statuses: number[] = []
    for (let asked = 0; asked < 6; asked++) statuses.push((await fetch(`http://127.0.0.1:${port}/`)).status)
    server.closeAllConnections()
    server.close()
    expect(statuses).toEqual([200, 200, 200, 200, 200, 429])
  },
)

it('the program of the README for code of your own decides', async () => {
  const { decision } = await runShownAs<{ decision: Decision }>(
    'README.md',
    'In code of your own',
    'decision',
  )
  expect(decision).toMatchObject({ allowed: true, remaining: 99, policy: 'api' })
})

/** The tables that `npm run bench` writes into both, without heads and rules. */
function benchRows(page: string, section: string): string[][] {
  const [, after = ''] = page.split(`<!-- bench:${section} -->`)
  const [text = ''] = after.split(`<!-- /bench:${section} -->`)
  return rowsOf(text).slice(2)
}

it('times while Redis is frozen are those of the last run', () => {
  const measured = benchRows(read('docs/reference/benchmarks.md'), 'faults')
    .filter(([, fault = '']) => fault.startsWith('frozen'))
    .map(([, , limiter, p99, longest]) => ['', limiter, p99, longest, ''])
  expect(measured.length).toBeGreaterThan(2)
  expect(benchRows(README, 'faults-short')).toEqual(measured)
})

it('speeds on Redis are those of the last run', () => {
  const measured = benchRows(read('docs/reference/benchmarks.md'), 'redis')
    .filter(([, name = '']) => name.includes('headgate'))
    .map(([, , ...figures]) => figures.slice(0, 3).map(figure => `${figure.split(' ')[0]} ×`))
  for (const [, workload = '', ...figures] of benchRows(README, 'redis-short'))
    expect(measured, workload).toContainEqual(figures.slice(0, 3))
})
