/** Commands about quotas: `usage` and `credit`. */
import type { Command } from 'commander'
import type { QuotaUsage, SubjectInput } from 'headgate'
import { printable } from 'headgate/internal'
import { CSV_HEAD, csvLine } from '../decision-api/usage-csv.js'
import type { UsagePage, UsageRow } from '../redis/usage-pages.js'
import { numberOf } from './number-options.js'
import { answer, at, type OperatorFlags, onServer, withOperatorClient } from './operator-command.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

interface NameFlags {
  readonly policy?: string
  readonly tier?: string
  readonly scope?: string
}

const SCOPE = 'which budget (default: global)'

interface ExportFlags extends NameFlags {
  readonly period?: string
  readonly format?: string
}

interface CreditFlags extends NameFlags {
  readonly id: string
  readonly expires?: string
}

/** Adds `headgate usage` and `headgate credit`. */
export function addUsageCommands(program: Command, terminal: Terminal): void {
  const usage = at(program.command('usage'))
    .description('Show what a subject has used of its quotas, in this period and the one before.')
    .argument('<subject>', 'type:id, such as user:42')
    .option('--policy <name>', 'only the quotas of this policy')
    .option('-t, --tier <name>', 'only the quotas of this tier')
    .option('--scope <name>', SCOPE)
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nExamples:\n  headgate usage user:42\n  headgate usage user:42 --policy plan --json',
    )
    .action((subject: string, flags: OperatorFlags & NameFlags) =>
      withOperatorClient(flags, terminal, async client => {
        const quotas = await client.usage(subject as SubjectInput, askOf(flags))
        const words = quotas.length === 0 ? 'no quotas' : quotas.map(usageWords).join('\n')
        answer(terminal, flags, { quotas }, words)
      }),
    )
  onServer(usage.command('export'))
    .description("Print what all callers have used of a policy's or tier's quotas, for billing.")
    .option('--redis <url>', 'work on Redis directly, without a server')
    .option('-c, --config <file>', 'required with --redis: the policy file that gives the names')
    .option('--subject-secret-file <file>', "with --redis: the servers' secret for hashing API keys")
    .option('--policy <name>', 'whose quotas; required, or --tier in its place')
    .option('-t, --tier <name>', 'whose quotas; required, or --policy in its place')
    .option('--period <which>', 'current or previous (default: current)')
    .option('--format <format>', 'csv, or json for an object a line (default: csv)')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nA server that is asked must use Redis. It shows names in full to a token of the\nrole administer, and masks them for others.\n\nExamples:\n  headgate usage export --policy plan --period previous > usage.csv\n  headgate usage export --policy plan --redis redis://127.0.0.1 -c headgate.yaml',
    )
    // Flags that `usage` has, too, are parsed as its own.
    .action((_own: ExportFlags, command: Command) => printExport(command.optsWithGlobals(), terminal))
  at(program.command('credit'))
    .description('Add units to the quotas of a policy or tier. The same id credits once.')
    .argument('<subject>', 'type:id, such as user:42')
    .argument('<units>', 'how many')
    .requiredOption(
      '--id <id>',
      'required: names this credit, so that it can be tried again: invoice-2027-01',
    )
    .option('--policy <name>', 'whose quotas; required, or --tier in its place')
    .option('-t, --tier <name>', 'whose quotas; required, or --policy in its place')
    .option('--scope <name>', SCOPE)
    .option('--expires <when>', 'never, or with the period (default: never)')
    .allowExcessArguments(false)
    .addHelpText('after', '\nExamples:\n  headgate credit user:42 10000 --policy plan --id invoice-2027-01')
    .action((subject: string, units: string, flags: OperatorFlags & CreditFlags) =>
      withOperatorClient(flags, terminal, async client => {
        const { id, expires } = flags
        const options = { ...askOf(flags), id, ...(expires !== undefined && { expires }) }
        const credited = await client.credit(subject as SubjectInput, numberOf('<units>', units), options)
        const first = credited.added ? 'credited' : 'was credited already'
        answer(terminal, flags, credited, [first, ...credited.quotas.map(usageWords)].join('\n'))
      }),
    )
}

/** Prints what all callers have used, as it is read. */
async function printExport(flags: OperatorFlags & ExportFlags, terminal: Terminal): Promise<void> {
  const { redis, config, policy, tier } = flags
  const period = oneOf('--period', flags.period ?? 'current', ['current', 'previous'])
  const format = oneOf('--format', flags.format ?? 'csv', ['csv', 'json'])
  for (const [name, option] of NOT_OF_EXPORT) {
    if (flags[name] !== undefined) throw new UsageError({ field: option, expected: 'none with export' })
  }
  if (redis !== undefined && config === undefined) {
    throw new UsageError({ field: '--config', expected: 'the policy file that gives the names', got: 'none' })
  }
  if ((policy === undefined) === (tier === undefined)) {
    const got = policy === undefined ? 'none' : 'both'
    throw new UsageError({ field: '--policy', expected: 'a policy, or --tier in its place', got })
  }
  const of = policy === undefined ? { tier: tier as string } : { policy }
  const lineOf = format === 'csv' ? csvLine : (row: UsageRow) => printable(JSON.stringify(row))
  await withOperatorClient(flags, terminal, async client => {
    let leftOut = 0
    let cursor: string | null = null
    do {
      const page: UsagePage = await client.usagePage({ of, period, cursor, limit: ROWS_PER_PAGE })
      const head = format === 'csv' && cursor === null ? [CSV_HEAD] : []
      const lines = [...head, ...page.rows.map(lineOf)]
      if (lines.length > 0) terminal.print(lines.join('\n'))
      leftOut += page.leftOut
      cursor = page.next
    } while (cursor !== null)
    if (leftOut > 0) {
      terminal.complain(`headgate: left out ${leftOut} with long names, of which only a digest is kept`)
    }
  })
}

const ROWS_PER_PAGE = 500
/** Of `usage` alone. */
const NOT_OF_EXPORT = [
  ['scope', '--scope'],
  ['json', '--json'],
] as const

function oneOf<const T extends string>(field: string, text: string, known: readonly T[]): T {
  const found = known.find(one => one === text)
  if (found !== undefined) return found
  throw new UsageError({ field, expected: known.join(' or '), got: JSON.stringify(text.slice(0, 100)) })
}

function askOf({ policy, tier, scope }: NameFlags): Record<string, string> {
  return {
    ...(policy !== undefined && { policy }),
    ...(tier !== undefined && { tier }),
    ...(scope !== undefined && { scope }),
  }
}

function usageWords(usage: QuotaUsage): string {
  const { policy, quota, used, limit, per, remaining, credits, carriedOver, overage, endsAt, previous } =
    usage
  const number = (value: number): string => value.toLocaleString('en')
  const more = [
    credits > 0 ? `${number(credits)} credits` : '',
    carriedOver > 0 ? `${number(carriedOver)} carried over` : '',
    overage > 0 ? `${number(overage)} beyond it` : '',
    `${number(previous.used)} in the ${per} before`,
  ].filter(text => text !== '')
  const ends = new Date(endsAt).toISOString()
  return printable(
    `${policy}.${quota}: ${number(used)} of ${number(limit)} used, ${number(remaining)} left until ${ends}; ${more.join(', ')}`,
  )
}
