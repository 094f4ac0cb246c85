import type { Command } from 'commander'
import type { Control } from 'headgate'
import { numberOf } from './number-options.js'
import { answer, at, type OperatorFlags, withOperatorClient } from './operator-command.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

interface ControlFlags {
  readonly on?: boolean
  readonly off?: boolean
  readonly multiplier?: string
}

const EXAMPLES = `
Examples:
  headgate control status
  headgate control off
  headgate control multiplier 0.5
  headgate control set --on --multiplier 1.5 --redis redis://127.0.0.1:6379`

/** Adds `headgate control`. */
export function addControlCommand(program: Command, terminal: Terminal): void {
  const show = (flags: OperatorFlags, control: Control) =>
    answer(terminal, flags, control, controlWords(control))
  const control = program.command('control').description('See and change the switches of a whole fleet.')
  at(control.command('status').alias('get'))
    .description('Print whether limits are on, and the multiplier.')
    .action((flags: OperatorFlags) =>
      withOperatorClient(flags, terminal, async client => show(flags, await client.control())),
    )
  const change = (flags: OperatorFlags, changed: Partial<Control>) =>
    withOperatorClient(flags, terminal, async client => show(flags, await client.setControl(changed)))
  at(control.command('on'))
    .description('Enforce the limits again, in every process.')
    .action((flags: OperatorFlags) => change(flags, { enabled: true }))
  at(control.command('off'))
    .description('Let everything pass, in every process; every decision says so.')
    .action((flags: OperatorFlags) => change(flags, { enabled: false }))
  at(control.command('reset'))
    .description('Put the switches back to normal: limits on, multiplier 1.')
    .action((flags: OperatorFlags) => change(flags, { enabled: true, multiplier: 1 }))
  at(control.command('multiplier'))
    .description('Scale every limit of every process.')
    .argument('<number>', '0 to 1000; 0 pauses throttling, except for bans')
    .action((number: string, flags: OperatorFlags) =>
      change(flags, { multiplier: numberOf('multiplier', number) }),
    )
  at(control.command('set'))
    .description('Change the switches for every process, within a second.')
    .option('--on', 'limits are enforced')
    .option('--off', 'everything passes, and every decision says so')
    .option('-m, --multiplier <number>', 'scale every limit, 0 to 1000; 0 pauses throttling, except for bans')
    .addHelpText('after', EXAMPLES)
    .action((flags: OperatorFlags & ControlFlags) => change(flags, controlOf(flags)))
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

function controlWords({ enabled, multiplier }: Control): string {
  const scale = multiplier === 0 ? 'paused (multiplier 0)' : `multiplier ${multiplier}`
  return `limits ${enabled ? 'on' : 'off'}, ${scale}`
}
