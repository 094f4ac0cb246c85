// The fault report: brings faults about on a real Redis and prints fault × figure × target.
//   node packages/headgate/test/faults/run.mjs           all of it, a few minutes; writes docs/reference/faults.md
//   … --long         a primary of a cluster is lost twenty times instead of five
//   … --quick        shorter faults and one client library; writes nothing
//   … --only=frozen  the scenarios whose name has this in it; writes nothing
//   … --skip=cluster the scenarios whose name has this in it are left out, and the document says so
//   … --strict       exit code 1 for a missed time, too; a missed count always is one
import { readFile, writeFile } from 'node:fs/promises'
import { register } from 'node:module'
import { cpus } from 'node:os'
import { monitorEventLoopDelay } from 'node:perf_hooks'

register('./ts-loader.mjs', import.meta.url)
const { scenarios } = await import('./scenarios.mjs')
const { info } = await import('./rows.mjs')
const { ms } = await import('./measure.mjs')

const DOCUMENT = new URL('../../../../docs/reference/faults.md', import.meta.url)
const BEGIN = '<!-- faults:begin (written by the fault report) -->'
const END = '<!-- faults:end -->'

const args = process.argv.slice(2)
const quick = args.includes('--quick')
const long = args.includes('--long')
const strict = args.includes('--strict')
const only = args.find(arg => arg.startsWith('--only='))?.slice('--only='.length)
const skip = args.find(arg => arg.startsWith('--skip='))?.slice('--skip='.length)
const skipped = new Set()
const libraries = quick ? ['ioredis'] : ['ioredis', 'node-redis']

console.warn = () => {}
const lines = []
let missedCounts = 0
let missedTimes = 0

for (const { promise, fault, run } of scenarios) {
  if (only !== undefined && !fault.includes(only)) continue
  if (skip !== undefined && fault.includes(skip)) {
    skipped.add(`${promise} (${fault})`)
    continue
  }
  for (const library of libraries) {
    process.stderr.write(`${promise} ${fault}, ${library} …\n`)
    for (const { figure, value, target, met, timing } of await withLoopDelay(() =>
      run(library, { quick, long }),
    )) {
      if (!met) timing ? missedTimes++ : missedCounts++
      lines.push([
        promise,
        fault,
        library,
        figure,
        value,
        target,
        target === '' ? '' : met ? 'yes' : '**no**',
      ])
    }
  }
}

const table = toTable(['', 'fault', 'client', 'figure', 'measured', 'target', 'met'], lines)
console.log(table)
console.log(`\nmissed: ${missedCounts} counts, ${missedTimes} times`)
if (!quick && only === undefined) await writeDocument(table)
process.exit(missedCounts > 0 || (strict && missedTimes > 0) ? 1 : 0)

/** Measured times include this process's own delays, so the longest of those is shown beside them. */
async function withLoopDelay(work) {
  const delays = monitorEventLoopDelay({ resolution: 1 })
  delays.enable()
  const rows = await work()
  delays.disable()
  if (!rows.some(({ timing }) => timing)) return rows
  return [...rows, info('longest delay of the event loop itself', ms(delays.max / 1e6))]
}

function toTable(head, rows) {
  const widths = head.map((_, column) => Math.max(...[head, ...rows].map(row => row[column].length), 3))
  const line = row => `| ${row.map((cell, column) => cell.padEnd(widths[column])).join(' | ')} |`
  return [line(head), `|${widths.map(width => '-'.repeat(width + 2)).join('|')}|`, ...rows.map(line)].join(
    '\n',
  )
}

async function writeDocument(text) {
  const page = await readFile(DOCUMENT, 'utf8')
  const begin = page.indexOf(BEGIN)
  const end = page.indexOf(END)
  if (begin === -1 || end === -1) throw new Error('docs/reference/faults.md: no place for the figures')
  const left = skipped.size === 0 ? '' : ` Not in this run: ${[...skipped].join(', ')}.`
  const about = `Node ${process.versions.node}, ${cpus().length} cores shared with Redis and the load.${left}`
  await writeFile(
    DOCUMENT,
    `${page.slice(0, begin + BEGIN.length)}\n\n${about}\n\n${text}\n\n${page.slice(end)}`,
  )
}
