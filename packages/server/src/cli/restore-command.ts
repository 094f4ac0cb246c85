import type { Command } from 'commander'
import type { LostSettings } from 'headgate/internal'
import { answer, atServer, type ServerFlags, withServerClient } from './operator-command.js'
import type { Terminal } from './terminal.js'

/** Adds `headgate restore`. */
export function addRestoreCommand(program: Command, terminal: Terminal): void {
  atServer(program.command('restore'))
    .description('Write switches and overrides back to a Redis that has lost them.')
    .option('--clear', 'drop them instead, in every process')
    .allowExcessArguments(false)
    .addHelpText('after', '\nExamples:\n  headgate restore\n  headgate restore --clear')
    .action((flags: ServerFlags & { readonly clear?: boolean }) =>
      withServerClient(flags, async client => {
        const lost = await (flags.clear ? client.clearLost() : client.restore())
        const done = flags.clear ? 'cleared' : 'restored'
        answer(
          terminal,
          flags,
          { [done]: lost },
          lost === null ? 'nothing was lost' : `${done} ${wordsOf(lost)}`,
        )
      }),
    )
}

function wordsOf({ control, overrides }: LostSettings): string {
  const switches =
    control === null ? [] : [`limits ${control.enabled ? 'on' : 'off'}, multiplier ${control.multiplier}`]
  return [
    ...switches,
    ...(overrides.length === 0
      ? []
      : [overrides.length === 1 ? '1 override' : `${overrides.length} overrides`]),
  ].join(', ')
}
