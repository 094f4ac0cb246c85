/** Runs the first programs of the READMEs, and compares their figures with the runs they are from. */
import { readFileSync } from 'node:fs'
import { createServer, type RequestListener } from 'node:http'
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

it.each(['README.md', 'packages/headgate/README.md'])(
  'the first program of %s lets 100 requests pass',
  async page => {
    const { app } = await runShownAs<{ app: RequestListener }>(page, 'npm install headgate', 'app')
    const server = createServer(app).listen(0, '127.0.0.1')
    await new Promise(resolve => server.once('listening', resolve))
    const { port } = server.address() as AddressInfo
    const statuses: number[] = []
    for (let asked = 0; asked < 101; asked++) statuses.push((await fetch(`http://127.0.0.1:${port}/`)).status)
    server.closeAllConnections()
    server.close()
    // The app has no route, so a request that passes the limit gets a 404.
    expect(statuses).toEqual([...Array.from({ length: 100 }, () => 404), 429])
  },
)

it('the program of the README for code of your own decides', async () => {
  const { decision } = await runShownAs<{ decision: Decision }>(
    'README.md',
    '## In your own code',
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
  expect(benchRows(README, 'redis-short').map(([, , ...figures]) => figures.slice(0, 3))).toEqual(measured)
})
