/** Commands about quotas: `usage` and `credit`. */
import type { Command } from 'commander'
import type { QuotaUsage, SubjectInput } from 'headgate'
import { printable } from 'headgate/internal'
import { UnavailableError } from '../operators/operator-errors.js'
import { fleetOf } from './fleet.js'
import { inOption, inOptions } from './in-option.js'
import { numberOf } from './number-options.js'
import { answer, at, type OperatorFlags, withOperatorClient } from './operator-command.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

interface NameFlags {
  readonly policy?: string
  readonly tier?: string
  readonly scope?: string
}

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
  named(at(program.command('usage')))
    .description('Show what a subject has used of its quotas, in this period and the one before.')
    .argument('<subject>', 'type:id, such as user:42; export for all who have used something')
    .option('--period <which>', 'with export: current or previous (default: current)')
    .option('--format <format>', 'with export: csv, or json for an object a line (default: csv)')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nExamples:\n  headgate usage user:42\n  headgate usage user:42 --policy plan --json\n  headgate usage export --policy plan --period previous --redis redis://127.0.0.1 -c headgate.yaml',
    )
    .action((subject: string, flags: OperatorFlags & ExportFlags) => {
      if (subject === 'export') return printExport(flags, terminal)
      for (const name of ['period', 'format'] as const) {
        if (flags[name] === undefined) continue
        throw new UsageError({ field: `--${name}`, expected: 'together with export' })
      }
      return withOperatorClient(flags, terminal, async client => {
        const quotas = await client.usage(subject as SubjectInput, askOf(flags))
        const words = quotas.length === 0 ? 'no quotas' : quotas.map(usageWords).join('\n')
        answer(terminal, flags, { quotas }, words)
      })
    })
  named(at(program.command('credit')))
    .description('Add units to the quotas of a policy or tier. The same id credits once.')
    .argument('<subject>', 'type:id, such as user:42')
    .argument('<units>', 'how many')
    .requiredOption('--id <id>', 'names this credit, so that it can be tried again: invoice-2027-01')
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
  const { redis: url, config: file, policy } = flags
  const period = oneOf('--period', flags.period ?? 'current', ['current', 'previous'])
  const format = oneOf('--format', flags.format ?? 'csv', ['csv', 'json'])
  if (url === undefined) throw missing('--redis', 'the Redis that keeps the quotas')
  if (file === undefined) throw missing('--config', 'the policy file that gives the names')
  if (policy === undefined) throw missing('--policy', 'a policy of the file')
  for (const [name, option] of NOT_OF_EXPORT) {
    if (flags[name] !== undefined) throw new UsageError({ field: option, expected: 'none with export' })
  }
  // Loaded on demand, so that --help does not wait for a Redis client.
  const { createLimiter } = await import('headgate')
  const { loadConfig } = await import('headgate/config')
  const { connectNodes } = await import('../redis/nodes.js')
  const { createRedisStore } = await import('../redis/connect.js')
  const { CSV_HEAD, csvLine, exportUsage } = await import('../redis/export-usage.js')
  const config = await loadConfig(file)
  const { prefix = 'ratelimit', tenant = '' } = config
  const store = inOption('--redis', () =>
    createRedisStore({ url, ...fleetOf(config), deadlineMs: EXPORT_DEADLINE_MS, onStoreFailure: 'throw' }),
  )
  const limiter = createLimiter({ config, store, onWarning: () => {} })
  try {
    const { nodes, close } = await connectNodes(url).catch(error => {
      throw new UnavailableError(`--redis: ${(error as Error).message}`)
    })
    try {
      if (format === 'csv') terminal.print(CSV_HEAD)
      let left = 0
      for await (const { rows, unnamed } of exportUsage({ nodes, limiter, prefix, tenant, policy, period })) {
        left += unnamed
        const lines = rows.map(row => (format === 'csv' ? csvLine(row) : JSON.stringify(row)))
        if (lines.length > 0) terminal.print(lines.join('\n'))
      }
      if (left > 0) {
        terminal.complain(`headgate: left out ${left} with long names, of which only a digest is kept`)
      }
    } finally {
      close()
    }
  } catch (error) {
    throw inOptions(error)
  } finally {
    await limiter.close()
  }
}

/** A page of it may take longer than a decision. */
const EXPORT_DEADLINE_MS = 5_000
const NOT_OF_EXPORT = [
  ['server', '--server'],
  ['tokenFile', '--token-file'],
  ['tier', '--tier'],
  ['scope', '--scope'],
  ['json', '--json'],
] as const

function missing(field: string, expected: string): UsageError {
  return new UsageError({ field, expected: `${expected}, with export`, got: 'none' })
}

function oneOf<const T extends string>(field: string, text: string, known: readonly T[]): T {
  const found = known.find(one => one === text)
  if (found !== undefined) return found
  throw new UsageError({ field, expected: known.join(' or '), got: JSON.stringify(text.slice(0, 100)) })
}

function named(command: Command): Command {
  return command
    .option('--policy <name>', 'a policy of the file')
    .option('-t, --tier <name>', 'a tier of the file')
    .option('--scope <name>', 'which budget (default: global)')
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
