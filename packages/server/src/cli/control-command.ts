import { lookup } from 'node:dns/promises'
import type { Command } from 'commander'
import type { Control } from 'headgate'
import { printable, shownName } from 'headgate/internal'
import { UnavailableError } from '../operators/operator-errors.js'
import { numberOf } from './number-options.js'
import { answer, at, type OperatorFlags, withOperatorClient } from './operator-command.js'
import { callersToken } from './read-secrets.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

interface ControlFlags {
  readonly on?: boolean
  readonly off?: boolean
  readonly multiplier?: string
}

interface ChangeFlags extends OperatorFlags {
  readonly all?: readonly string[]
}

const EXAMPLES = `
Examples:
  headgate control status
  headgate control off
  headgate control off --all http://headgate-admin:8082
  headgate control multiplier 0.5
  headgate control set --on --multiplier 1.5 --redis redis://127.0.0.1:6379`

/** Adds `headgate control`. */
export function addControlCommand(program: Command, terminal: Terminal): void {
  const show = (flags: OperatorFlags, control: Changed) =>
    answer(terminal, flags, control, controlWords(control))
  const control = program.command('control').description('See and change the switches of a whole fleet.')
  at(control.command('status').alias('get'))
    .description('Print whether limits are on, and the multiplier.')
    .action((flags: OperatorFlags) =>
      withOperatorClient(flags, terminal, async client => show(flags, await client.control())),
    )
  const change = (flags: ChangeFlags, changed: Partial<Control>) =>
    flags.all === undefined
      ? withOperatorClient(flags, terminal, async client => show(flags, await client.setControl(changed)))
      : changeAll(flags, flags.all, changed, terminal)
  const everywhere = (command: Command) =>
    at(command).option(
      '--all <url...>',
      'tell each of these servers directly, Redis or not: a list, or a name with several addresses',
    )
  everywhere(control.command('on'))
    .description('Enforce the limits again, in every process.')
    .action((flags: ChangeFlags) => change(flags, { enabled: true }))
  everywhere(control.command('off'))
    .description('Let everything pass, in every process; every decision says so.')
    .action((flags: ChangeFlags) => change(flags, { enabled: false }))
  everywhere(control.command('reset'))
    .description('Put the switches back to normal: limits on, multiplier 1.')
    .action((flags: ChangeFlags) => change(flags, { enabled: true, multiplier: 1 }))
  everywhere(control.command('multiplier'))
    .description('Scale every limit of every process.')
    .argument('<number>', '0 to 1000; 0 pauses throttling, except for bans')
    .action((number: string, flags: ChangeFlags) =>
      change(flags, { multiplier: numberOf('multiplier', number) }),
    )
  everywhere(control.command('set'))
    .description('Change the switches for every process, within a second.')
    .option('--on', 'limits are enforced')
    .option('--off', 'everything passes, and every decision says so')
    .option('-m, --multiplier <number>', 'scale every limit, 0 to 1000; 0 pauses throttling, except for bans')
    .addHelpText('after', EXAMPLES)
    .action((flags: ChangeFlags & ControlFlags) => change(flags, controlOf(flags)))
}

function controlOf({ on, off, multiplier }: ControlFlags): Partial<Control> {
  if (on && off) throw new UsageError({ field: '--on', expected: 'one of --on and --off', got: 'both' })
  if (!on && !off && multiplier === undefined) {
    throw new UsageError({ field: 'control set', expected: '--on, --off or --multiplier', got: 'none' })
  }
  return {
    ...((on || off) && { enabled: on === true }),
    ...(multiplier !== undefined && { multiplier: numberOf('--multiplier', multiplier) }),
  }
}

type Changed = Control & { readonly appliedTo?: 'server' }

function controlWords({ enabled, multiplier, appliedTo }: Changed): string {
  const scale = multiplier === 0 ? 'paused (multiplier 0)' : `multiplier ${multiplier}`
  const where =
    appliedTo === undefined
      ? ''
      : '; on this server alone, because Redis does not answer (--all reaches the others)'
  return `limits ${enabled ? 'on' : 'off'}, ${scale}${where}`
}

/** Tells every server, and says of each what came of it. Fails if any could not be told. */
async function changeAll(
  flags: OperatorFlags,
  all: readonly string[],
  changed: Partial<Control>,
  terminal: Terminal,
): Promise<void> {
  const other = (['server', 'redis', 'config'] as const).find(name => flags[name] !== undefined)
  if (other !== undefined) throw new UsageError({ field: `--${other}`, expected: 'none beside --all' })
  const { serverUrl } = await import('./operator-client.js')
  const { httpOperatorClient } = await import('../operators/http-operator-client.js')
  const token = await callersToken(flags.tokenFile, process.env)
  const urls = (
    await Promise.all(all.flatMap(text => text.split(',')).map(text => addressesOf(serverUrl(text))))
  ).flat()
  const told = await Promise.all(
    urls.map(async server => {
      try {
        return { server, control: await httpOperatorClient(server, token).setControl(changed) }
      } catch (error) {
        return { server, error: (error as Error).message }
      }
    }),
  )
  const lines = told.map(({ server, control, error }) => {
    if (control === undefined) return `${server}: NOT changed: ${error}`
    const { appliedTo: _alone, ...switches } = control
    return `${server}: ${controlWords(switches)}`
  })
  answer(terminal, flags, { servers: told }, lines.map(printable).join('\n'))
  const missed = told.filter(({ error }) => error !== undefined).length
  if (missed > 0) throw new UnavailableError(`${missed} of ${told.length} servers could not be told`)
}

/** Returns the address of each server behind a name. */
async function addressesOf(url: string): Promise<readonly string[]> {
  const { protocol, hostname, port } = new URL(url)
  const found = await lookup(hostname.replace(/^\[|\]$/g, ''), { all: true }).catch(() => {
    throw new UnavailableError(`--all: expected a name that has addresses; got ${shownName(hostname)}`)
  })
  // localhost has two addresses, and the server listens on one.
  const addresses = found.every(({ address }) => address === '127.0.0.1' || address === '::1')
    ? found.slice(0, 1)
    : found
  return addresses.map(({ address, family }) => {
    const host = family === 6 ? `[${address}]` : address
    return `${protocol}//${host}${port === '' ? '' : `:${port}`}`
  })
}
