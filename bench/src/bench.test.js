import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import { dearerThanCommitted } from './instructions.js'

const MAIN = fileURLToPath(new URL('bench.js', import.meta.url))

/** @param {...string} args */
const bench = (...args) => promisify(execFile)(process.execPath, [MAIN, ...args])

/** Returns the cells of the tables in a text, without heads and rules. @param {string} text */
const rowsOf = text =>
  text
    .split('\n\n')
    .filter(part => part.trim().startsWith('|'))
    .flatMap(table => table.trim().split('\n').slice(2))
    .map(line =>
      line
        .split('|')
        .slice(1, -1)
        .map(cell => cell.trim()),
    )

const BENCHES = [
  { name: 'http', args: ['--only', 'fastify'], rows: 7 },
  { name: 'embedded', args: [], rows: 7 },
  { name: 'redis', args: ['--only', 'b'], rows: 5 + 2 },
  { name: 'faults', args: ['--only', 'frozen (SIGSTOP)'], rows: 3 + 3 },
  { name: 'gateway', args: [], rows: 4 },
]

// One of them shows that the harness works; all of them are run by `npm run proof -- long`.
it.each(process.env.HEADGATE_LONG === '1' ? BENCHES : BENCHES.slice(0, 1))(
  'npm run bench -- $name has figures in every row',
  async ({ name, args, rows }) => {
    const { stdout } = await bench(name, '--quick', '--noisy', ...args)
    const table = rowsOf(stdout)
    expect(table, stdout).toHaveLength(rows)
    for (const cells of table) {
      expect(cells.length).toBeGreaterThan(2)
      for (const cell of cells) expect(cell, stdout).not.toMatch(/^$|NaN|undefined|Infinity/)
      expect(
        cells.slice(1).some(cell => /\d/.test(cell)),
        cells.join(),
      ).toBe(true)
    }
  },
  120_000,
)

it('what cannot be measured is named', async () => {
  await expect(bench('speed')).rejects.toThrow(/expected one of embedded, .*; got 'speed'/)
  await expect(bench('redis', '--only', 'z')).rejects.toThrow("expected some of a, s, b, e, log; got 'z'")
})

it('instructions: without valgrind the error says how to get it', async () => {
  const run = promisify(execFile)(process.execPath, [MAIN, 'instructions'], { env: { PATH: '/nowhere' } })
  await expect(run).rejects.toThrow('apt-get install valgrind')
})

it('instructions: a script may cost 1.15 × its committed ratio to an empty one', () => {
  /** @param {number} again */
  const counts = again => [
    { script: 'empty script', inCall: 1, counts: { first: 100, again: 100 } },
    { script: 'counter', inCall: 1, counts: { first: 300, again } },
  ]
  const committed = { 'counter, 1 in a call': { first: 3, again: 2 } }
  expect(dearerThanCommitted(counts(230), committed)).toEqual([])
  expect(dearerThanCommitted(counts(231), committed)).toEqual([
    'counter, 1 in a call, again: 2.31 × an empty script, 2 × committed',
  ])
  expect(dearerThanCommitted(counts(200), {})).toHaveLength(1)
})
