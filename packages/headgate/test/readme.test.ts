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

it('speeds on Redis are those of the committed run', () => {
  const measured = new Map(
    rowsOf(read('bench/results/redis.md'))
      .filter(([, , ours]) => ours === 'counter')
      .map(([, against = '', , , times = '']) => [against, times]),
  )
  const shown = rowsOf(README).filter(([, workload = '']) => /^\([a-e]\) /.test(workload))
  expect(shown.length).toBeGreaterThan(2)
  for (const [, workload = '', ...times] of shown) {
    const letter = workload.slice(0, 3)
    const inFlight = (count: number) =>
      measured.get(`${letter} ${count} in flight, fastest tuned peer`) ?? '–'
    expect(times.slice(0, 3), workload).toEqual([512, 64, 1].map(inFlight))
    expect(times[0], workload).not.toBe('–')
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
