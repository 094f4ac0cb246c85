import { userInfo } from 'node:os'
import type { Command } from 'commander'
import type { Duration, OverrideOptions, OverrideTarget } from 'headgate'
import type { Desk } from '../operators/desk.js'
import { UsageError } from './usage-error.js'

/** Where a command is carried out. */
interface PlaceFlags {
  readonly server: string
  readonly redis?: string
  readonly config?: string
}

const DEFAULT_SERVER = 'http://127.0.0.1:8082'

/** Adds `headgate control` and `headgate override`. */
export function addOperatorCommands(program: Command): void {
  const control = program.command('control').description('See and change the switches of a whole fleet.')
  at(control.command('get'))
    .description('Print whether limits are on, and the multiplier.')
    .action((flags: PlaceFlags) => withDesk(flags, async desk => print(controlWords(await desk.control()))))
  at(control.command('set'))
    .description('Change them for every process, within a second.')
    .option('--on', 'limits are enforced')
    .option('--off', 'everything passes, and every decision says so')
    .option('-m, --multiplier <number>', 'scale every limit; 0 pauses throttling')
    .action((flags: PlaceFlags & ControlFlags) =>
      withDesk(flags, async desk => print(controlWords(await desk.setControl(controlOf(flags))))),
    )

  const override = program
    .command('override')
    .description('Replace the numbers of a subject or a rule for a time.')
  at(override.command('list'))
    .description('Print the overrides in force.')
    .action((flags: PlaceFlags) =>
      withDesk(flags, async desk => {
        const overrides = await desk.overrides()
        print(overrides.length === 0 ? 'none' : overrides.map(overrideWords).join('\n'))
      }),
    )
  at(target(override.command('set')))
    .description('Put an override in force in every process, within a second. It ends by itself.')
    .option('--tier <name>', 'another tier')
    .option('--limit <id=units...>', 'other numbers for limits of the policy that applies: log-1m=500')
    .option('--minute <units>', 'a tier of its own: units in a minute (also --hour, --day, --burst)')
    .option('--hour <units>')
    .option('--day <units>')
    .option('--burst <factor>')
    .requiredOption('--ttl <duration>', 'how long it holds: 30m, 2h, at most 31d')
    .requiredOption('--reason <text>', 'why')
    .option('--by <name>', 'who; left out: the name you are logged in with')
    .action((flags: PlaceFlags & SetFlags) =>
      withDesk(flags, async desk => {
        await desk.setOverride(overrideOf(flags))
        print('in force')
      }),
    )
  at(target(override.command('remove')))
    .description('End an override now.')
    .action((flags: PlaceFlags & TargetFlags) =>
      withDesk(flags, async desk =>
        print((await desk.removeOverride(targetOf(flags))) ? 'removed' : 'there was none'),
      ),
    )
}

function at(command: Command): Command {
  return command
    .option('-s, --server <url>', 'the decision API of a running headgate serve', DEFAULT_SERVER)
    .option('--redis <url>', 'in Redis itself, without a server')
    .option('-c, --config <file>', 'with --redis: the policy file whose names may be used')
}

function target(command: Command): Command {
  return command.option('--subject <type:id>', 'whose').option('--rule <name>', 'or which rule')
}

/** Loaded only when it is needed: --help should not wait for a client of Redis. */
async function withDesk(flags: PlaceFlags, work: (desk: Desk) => Promise<void>): Promise<void> {
  const { openDesk } = await import('./open-desk.js')
  const desk = await openDesk(flags)
  try {
    await work(desk)
  } finally {
    await desk.close()
  }
}

interface ControlFlags {
  readonly on?: boolean
  readonly off?: boolean
  readonly multiplier?: string
}

function controlOf({ on, off, multiplier }: ControlFlags) {
  if (on && off) throw new UsageError('--on: expected one of --on and --off; got both')
  if (!on && !off && multiplier === undefined) {
    throw new UsageError('control set: expected --on, --off or --multiplier; got none')
  }
  return {
    ...((on || off) && { enabled: on === true }),
    ...(multiplier !== undefined && { multiplier: numberOf('--multiplier', multiplier) }),
  }
}

interface TargetFlags {
  readonly subject?: string
  readonly rule?: string
}

interface SetFlags extends TargetFlags {
  readonly tier?: string
  readonly limit?: readonly string[]
  readonly minute?: string
  readonly hour?: string
  readonly day?: string
  readonly burst?: string
  readonly ttl: string
  readonly reason: string
  readonly by?: string
}

function targetOf({ subject, rule }: TargetFlags): OverrideTarget {
  if (subject !== undefined && rule === undefined) return { subject }
  if (rule !== undefined && subject === undefined) return { rule }
  throw new UsageError(
    `--subject: expected one of --subject and --rule; got ${subject === undefined ? 'neither' : 'both'}`,
  )
}

function overrideOf(flags: SetFlags): OverrideOptions {
  const numbers = (['minute', 'hour', 'day', 'burst'] as const).flatMap(name => {
    const text = flags[name]
    return text === undefined
      ? []
      : [[name, text === 'unlimited' ? text : numberOf(`--${name}`, text)] as const]
  })
  const limits = (flags.limit ?? []).map(text => {
    const [id = '', units] = text.split('=')
    if (units === undefined)
      throw new UsageError(`--limit: expected id=units, such as log-1m=500; got "${text}"`)
    return [id, numberOf('--limit', units)] as const
  })
  // The gate refuses none and several of them, by name.
  return {
    ...targetOf(flags),
    ...(flags.tier !== undefined && { tier: flags.tier }),
    ...(numbers.length > 0 && { numbers: Object.fromEntries(numbers) }),
    ...(limits.length > 0 && { limits: Object.fromEntries(limits) }),
    ttl: flags.ttl as Duration,
    reason: flags.reason,
    by: flags.by ?? userInfo().username,
  } as OverrideOptions
}

function numberOf(flag: string, text: string): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isFinite(value)) return value
  throw new UsageError(`${flag}: expected a number; got "${text}"`)
}

function controlWords({ enabled, multiplier }: { enabled: boolean; multiplier: number }): string {
  const scale = multiplier === 0 ? 'paused (multiplier 0)' : `multiplier ${multiplier}`
  return `limits ${enabled ? 'on' : 'off'}, ${scale}`
}

function overrideWords(override: Awaited<ReturnType<Desk['overrides']>>[number]): string {
  const whose = 'subject' in override ? override.subject : `rule ${override.rule}`
  const what =
    'tier' in override
      ? `tier ${override.tier}`
      : Object.entries('numbers' in override ? override.numbers : override.limits)
          .map(([name, units]) => `${name} ${units}`)
          .join(', ')
  return `${whose}: ${what}, until ${new Date(override.expiresAt).toISOString()}, by ${override.by}: ${override.reason}`
}

function print(text: string): void {
  process.stdout.write(`${text}\n`)
}
