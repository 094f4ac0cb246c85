import { readFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import type { Command } from 'commander'
import type { Duration, Override } from 'headgate'
import type { OverrideEffect, OverrideOptions, OverrideTarget } from 'headgate/internal'
import { mistakeAt, printable } from 'headgate/internal'
import { numberOf } from './number-options.js'
import { answer, at, type OperatorFlags, withOperatorClient } from './operator-command.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

interface TargetFlags {
  readonly subject?: string
  readonly rule?: string
  readonly policy?: string
  readonly ban?: true
}

interface SetFlags extends TargetFlags {
  readonly tier?: string
  readonly limit?: readonly string[]
  readonly minute?: string
  readonly hour?: string
  readonly day?: string
  readonly month?: string
  readonly burst?: string
  readonly ttl: string
  readonly reason: string
  readonly by?: string
  readonly dryRun?: boolean
}

const EXAMPLES = `
What is not named stays: --minute 5 keeps the burst, the hour and the day of the tier.
An override of a subject holds where no rule has limits of its own; with --rule it holds on that rule.

Examples:
  headgate override set --subject user:42 --tier enterprise --ttl 2h --reason 'launch day'
  headgate override set --rule search --limit log-1m=50 --ttl 30m --reason 'incident 7'
  headgate override set --subject user:42 --rule search --minute 500 --ttl 2h --reason 'launch day'
  headgate override set --policy api --limit log-1m=500 --ttl 1h --reason 'launch day'
  headgate override set --subject user:7 --minute 5 --ttl 1d --reason abuse --dry-run
  headgate override set --subject user:7 --ban --ttl 1h --reason scraping`

/** Adds `headgate override`. */
export function addOverrideCommand(program: Command, terminal: Terminal): void {
  const override = program
    .command('override')
    .description('Replace the numbers of a subject, a rule or a policy for a time.')
  at(override.command('list'))
    .description('Print the overrides in force.')
    .action((flags: OperatorFlags) =>
      withOperatorClient(flags, terminal, async client => {
        const overrides = await client.overrides()
        const words = overrides.length === 0 ? 'none' : overrides.map(overrideWords).join('\n')
        answer(terminal, flags, { overrides }, words)
      }),
    )
  at(override.command('export'))
    .description('Print the overrides in force as JSON, for import.')
    .action((flags: OperatorFlags) =>
      withOperatorClient(flags, terminal, async client => {
        terminal.print(printable(JSON.stringify({ overrides: await client.overrides() })))
      }),
    )
  at(override.command('import <file>'))
    .description(
      'Set the overrides of a file that export has printed, each for the time it has left; - reads standard input.',
    )
    .allowExcessArguments(false)
    .action(async (file: string, flags: OperatorFlags) => {
      const all = await readOverrides(file)
      await withOperatorClient(flags, terminal, async client => {
        const live = all.filter(({ expiresAt }) => expiresAt > Date.now())
        for (const { setAt: _setAt, expiresAt, ...override } of live) {
          const ttl = `${Math.max(1, expiresAt - Date.now())}ms` as Duration
          await client.setOverride({ ...override, ttl } as OverrideOptions)
        }
        const ended = all.length - live.length
        answer(terminal, flags, { set: live.length, ended }, `${live.length} set, ${ended} had ended`)
      })
    })
  at(target(override.command('set')))
    .description('Put an override in force in every process, within a second. It ends by itself.')
    .option('--tier <name>', 'another tier')
    .option('--limit <id=units...>', 'other numbers for limits of the policy that applies: log-1m=500')
    .option(
      '--minute <units>',
      'other numbers: units per minute, or unlimited (also --hour, --day, --month, --burst)',
    )
    .option('--hour <units>')
    .option('--day <units>')
    .option('--month <units>')
    .option('--burst <factor>')
    .requiredOption('--ttl <duration>', 'how long it lasts: 30m, 2h, at most 31d')
    .requiredOption('--reason <text>', 'why')
    .option('--by <name>', 'who (default: the name you are logged in with)')
    .option('--dry-run', 'only print the limits now and after')
    .addHelpText('after', EXAMPLES)
    .action(async (flags: OperatorFlags & SetFlags) => {
      const options = overrideOf(flags)
      const set = flags.dryRun !== true
      await withOperatorClient(flags, terminal, async client => {
        const effect = await (set ? client.setOverride(options) : client.previewOverride(options))
        answer(terminal, flags, { set, ...effect }, effectWords(effect, set))
      })
    })
  at(target(override.command('remove')))
    .description('End an override now.')
    .action(async (flags: OperatorFlags & TargetFlags) => {
      const whose = targetOf(flags)
      await withOperatorClient(flags, terminal, async client => {
        const removed = await client.removeOverride(whose)
        answer(terminal, flags, { removed }, removed ? 'removed' : 'there was none')
      })
    })
}

async function readOverrides(file: string): Promise<readonly Override[]> {
  try {
    const { overrides } = JSON.parse(await readFile(file === '-' ? '/dev/stdin' : file, 'utf8')) as {
      overrides: Override[]
    }
    if (Array.isArray(overrides) && overrides.every(({ expiresAt }) => Number.isFinite(expiresAt)))
      return overrides
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== undefined)
      throw new UsageError({ field: file, expected: 'a file that can be read', got: code })
  }
  throw new UsageError({
    field: file,
    expected: 'what headgate override export prints',
    got: 'something else',
  })
}

function target(command: Command): Command {
  return command
    .option('--subject <type:id>', 'whose numbers: type:id, or the reference of a denial')
    .option('--rule <name>', "which rule's; with --subject, only for that subject")
    .option('--policy <name>', "which policy's; with --subject, only for that subject")
    .option('--ban', 'with --subject: deny everything it asks for')
}

/** The limiter says which of them go together. */
function targetOf({ subject, rule, policy, ban }: TargetFlags): OverrideTarget {
  if (subject === undefined && rule === undefined && policy === undefined) {
    const expected = '--subject, --rule, --policy, or --subject and one of these'
    throw new UsageError({ field: '--subject', expected, got: 'none' })
  }
  const named = { subject, rule, policy, ban }
  return Object.fromEntries(
    Object.entries(named).filter(([, value]) => value !== undefined),
  ) as unknown as OverrideTarget
}

function overrideOf(flags: SetFlags): OverrideOptions {
  const numbers = (['minute', 'hour', 'day', 'month', 'burst'] as const).flatMap(name => {
    const text = flags[name]
    if (text === undefined) return []
    return [[name, text === 'unlimited' ? text : numberOf(`--${name}`, text)] as const]
  })
  const limits = (flags.limit ?? []).map(limitOf)
  const kinds = [flags.tier !== undefined, numbers.length > 0, limits.length > 0, flags.ban === true].filter(
    Boolean,
  )
  if (kinds.length !== 1) {
    const got = kinds.length === 0 ? 'none' : 'several'
    throw new UsageError({
      field: '--tier',
      expected:
        'one of --tier, --limit, --ban and numbers of its own (--minute, --hour, --day, --month, --burst)',
      got,
    })
  }
  return {
    ...targetOf(flags),
    ...(flags.tier !== undefined && { tier: flags.tier }),
    ...(numbers.length > 0 && { numbers: Object.fromEntries(numbers) }),
    ...(limits.length > 0 && { limits: Object.fromEntries(limits) }),
    ttl: flags.ttl as Duration,
    reason: flags.reason,
    by: flags.by ?? loginName(),
  } as OverrideOptions
}

function limitOf(text: string): readonly [id: string, units: number] {
  const [, id, units] = /^([^=]+)=([^=]+)$/.exec(text) ?? []
  if (id !== undefined && units !== undefined) return [id, numberOf('--limit', units)]
  throw new UsageError(mistakeAt('--limit', 'id=units, such as log-1m=500', text))
}

/** In a container the user often has only a number. */
function loginName(): string {
  try {
    return userInfo().username
  } catch {
    throw new UsageError({
      field: '--by',
      expected: 'who does it',
      got: 'nothing, and this system has no name for its user',
    })
  }
}

/** The limits of each policy that changes, now and after, and the rules that keep theirs. */
function effectWords({ changes, unchanged }: OverrideEffect, isSet: boolean): string {
  const limits = (lines: readonly string[]) => lines.join(', ') || 'unlimited'
  const lines = changes.flatMap(({ rule, policy, tier, now, after }) => [
    `${tier === null ? `policy ${policy}` : `tier ${tier}`}, by ${rule}:`,
    `  before ${limits(now)}`,
    `  after  ${limits(after)}`,
  ])
  const others = unchanged.length === 0 ? [] : [`unchanged, name one with --rule: ${unchanged.join(', ')}`]
  return [isSet ? 'in force' : 'not set (--dry-run)', ...lines, ...others].map(printable).join('\n')
}

function replacementWords(override: Override): string {
  if ('tier' in override) return `tier ${override.tier}`
  if (!('numbers' in override) && !('limits' in override)) return 'banned'
  return Object.entries('numbers' in override ? override.numbers : override.limits)
    .map(([name, units]) => `${name} ${units}`)
    .join(', ')
}

function overrideWords(override: Override): string {
  const target = 'subject' in override ? [override.subject] : []
  const whose = [
    ...target,
    ...(override.rule === undefined ? [] : [`rule ${override.rule}`]),
    ...(override.policy === undefined ? [] : [`policy ${override.policy}`]),
  ].join(', ')
  const what = replacementWords(override)
  const until = new Date(override.expiresAt).toISOString()
  return printable(`${whose}: ${what}, until ${until}, by ${override.by}: ${override.reason}`)
}
