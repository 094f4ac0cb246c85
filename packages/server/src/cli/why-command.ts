import type { Command } from 'commander'
import { isReference, printable } from 'headgate/internal'
import type { ShownDenial } from '../observe/denial-log.js'
import { answer, atServer, type ServerFlags, withServerClient } from './operator-command.js'
import type { Terminal } from './terminal.js'

/** Adds `headgate why`. */
export function addWhyCommand(program: Command, terminal: Terminal): void {
  atServer(program.command('why'))
    .description('Say why a request was denied, by the reference in its body or its X-Request-Id.')
    .argument('<id>', 'a reference, or a request id')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nExamples:\n  headgate why k7qf2m9xabcd\n  headgate why 2e84e213-2c8d-4700-a699-ff07b5d2fd03 --json',
    )
    .action((id: string, flags: ServerFlags) =>
      withServerClient(flags, async client => {
        const denials = await client.denials(isReference(id) ? { reference: id } : { requestId: id })
        if (denials.length === 0) {
          throw new Error(
            'no denial of the last day has this reference or request id, as far as denials were kept',
          )
        }
        answer(terminal, flags, { denials }, denials.map(denialLines).join('\n'))
      }),
    )
}

function denialLines(denial: ShownDenial): string {
  const { atMs, method, path, subject, reference, rule, limit, policy, tier, source, reason } = denial
  const { retryAfterMs, requestId, count } = denial
  const request = [method, path].filter(part => part !== null).join(' ')
  const wait = retryAfterMs === null ? 'no waiting helps' : `next in ${Math.ceil(retryAfterMs / 1_000)} s`
  const lines = [
    `${new Date(atMs).toISOString()}  ${request === '' ? 'a check' : request}`,
    `  caller    ${subject} (${reference}), tier ${tier ?? 'none'}`,
    `  denied by ${limit ?? `policy ${policy}`}, rule ${rule ?? 'none'}: ${reason}, ${wait}`,
    `  decided   by ${source}`,
    ...(requestId === null ? [] : [`  request   ${requestId}`]),
    ...(count > 1 ? [`  it stands for ${count} denials`] : []),
  ]
  return lines.map(printable).join('\n')
}
