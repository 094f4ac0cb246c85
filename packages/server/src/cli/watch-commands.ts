/** `headgate top` and `headgate watch`: the stats of a fleet in the terminal. */
import { setTimeout as wait } from 'node:timers/promises'
import type { Command } from 'commander'
import { printable } from 'headgate/internal'
import type { Snapshot } from '../observe/snapshot.js'
import { numberOf } from './number-options.js'
import { at, type OperatorFlags, withOperatorClient } from './operator-command.js'
import type { Line, Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

interface WatchFlags extends OperatorFlags {
  readonly count?: string
}

const EVERY_MS = 1_000
/** The columns of `top` that are numbers. */
const NUMBERS = [2, 3]
const EXAMPLES = {
  top: `
Examples:
  headgate top
  headgate top --count 1 --json | jq .deniedCallers
  headgate top --redis redis://127.0.0.1:6379`,
  watch: `
Examples:
  headgate watch
  headgate watch --count 60 --server http://127.0.0.1:8082`,
}

/** Adds `headgate top` and `headgate watch`. */
export function addWatchCommands(program: Command, terminal: Terminal): void {
  const add = (
    name: 'top' | 'watch',
    description: string,
    show: (snapshot: Snapshot, terminal: Terminal) => void,
  ) => {
    at(program.command(name))
      .description(description)
      .option('-n, --count <number>', 'how many times, once a second (default: until Ctrl-C)')
      .addHelpText('after', EXAMPLES[name])
      .action((flags: WatchFlags) => watch(flags, terminal, show))
  }
  add('top', 'Show who is denied most, once a second.', (snapshot, to) => to.redraw(topLines(snapshot)))
  add('watch', 'Show decisions, denials and latency, once a second.', (snapshot, to) =>
    to.print(watchWords(snapshot)),
  )
}

async function watch(
  flags: WatchFlags,
  terminal: Terminal,
  show: (snapshot: Snapshot, terminal: Terminal) => void,
): Promise<void> {
  const count = countOf(flags.count)
  await withOperatorClient(flags, terminal, async client => {
    for (let times = 1; ; times++) {
      const snapshot = await client.stats()
      if (flags.json) terminal.print(printable(JSON.stringify(snapshot)))
      else show(snapshot, terminal)
      if (times === count) return
      await wait(EVERY_MS)
    }
  })
}

function countOf(text: string | undefined): number | null {
  if (text === undefined) return null
  const count = numberOf('--count', text)
  if (Number.isInteger(count) && count >= 1) return count
  throw new UsageError({ field: '--count', expected: 'a whole number from 1', got: text })
}

const rate = (perSecond: number): string => perSecond.toFixed(1)
const percent = (share: number | null): string => (share === null ? '-' : `${(share * 100).toFixed(1)} %`)
const ms = (value: number | null): string => (value === null ? '-' : `${value.toFixed(2)} ms`)

/** Formats one line a second. */
function watchWords({ atMs, now, store, scope }: Snapshot): string {
  const time = new Date(atMs).toISOString().slice(11, 19)
  const { allowedPerSecond, deniedPerSecond, denialRate, overheadMs } = now
  const stats = [
    `${rate(allowedPerSecond)} allowed/s`,
    `${rate(deniedPerSecond)} denied/s`,
    `${percent(denialRate)} denied`,
    `p50 ${ms(overheadMs.p50)}`,
    `p99 ${ms(overheadMs.p99)}`,
    `${store.kind} ${store.state}`,
    scope,
  ]
  return `${time}  ${stats.join('  ')}`
}

function topLines(snapshot: Snapshot): readonly Line[] {
  const { deniedCallers } = snapshot
  const rows = deniedCallers.map(
    ({ subject, reference, denied, deniedPerSecond, policy, tier, overridden }) => [
      printable(subject),
      reference,
      String(denied),
      rate(deniedPerSecond),
      printable(policy ?? '-'),
      printable(tier ?? '-'),
      overridden ? 'overridden' : '',
    ],
  )
  const first: Line = { text: watchWords(snapshot), style: 'bold' }
  const last: Line = { text: '' }
  if (deniedCallers.length === 0) {
    return [first, { text: 'no caller was denied in the last five minutes' }, last]
  }
  const head = ['SUBJECT', 'REFERENCE', 'DENIED', 'PER SECOND', 'POLICY', 'TIER', '']
  const [names = '', ...lines] = columns([head, ...rows])
  const table = lines.map(
    (text, row): Line =>
      (deniedCallers[row]?.deniedPerSecond ?? 0) >= 0.1 ? { text, style: 'red' } : { text },
  )
  return [first, { text: names, style: 'dim' }, ...table, last]
}

/** Formats rows as lines, each column as wide as its widest cell, numbers to the right. */
function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map(row => row[column]?.length ?? 0)))
  return rows.map(row =>
    row
      .map((cell, column) =>
        NUMBERS.includes(column) ? cell.padStart(widths[column] ?? 0) : cell.padEnd(widths[column] ?? 0),
      )
      .join('  ')
      .trimEnd(),
  )
}
