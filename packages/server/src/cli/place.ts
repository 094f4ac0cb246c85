import type { Command } from 'commander'
import { printable } from 'headgate/config'
import type { OperatorClient } from '../operators/operator-client.js'
import { inOptions } from './in-option.js'
import type { Terminal } from './terminal.js'

/** Where a command is carried out. */
export interface PlaceFlags {
  readonly server?: string
  readonly redis?: string
  readonly config?: string
  readonly subjectSecretFile?: string
  readonly tokenFile?: string
  readonly json?: boolean
}

/** The options of a command that is carried out at a server or in Redis. */
export function at(command: Command): Command {
  return command
    .option(
      '-s, --server <url>',
      'the decision API of a running headgate serve (default: http://127.0.0.1:8082)',
    )
    .option('--token-file <file>', "with --server: the token to call it with (default: HEADGATE_TOKEN's)")
    .option('--redis <url>', 'work on Redis directly, without a server')
    .option('-c, --config <file>', 'with --redis: the policy file that gives the names')
    .option('--subject-secret-file <file>', "with --redis: the servers' secret for hashing API keys")
    .option('--json', 'print the answer as JSON')
}

/** Prints an answer: as JSON where a script asked for it, else in words. */
export function answer(terminal: Terminal, { json }: PlaceFlags, value: unknown, words: string): void {
  terminal.print(json ? printable(JSON.stringify(value)) : words)
}

/** Does the work at the place that the flags name. Refusals are told in the words of the command line. */
export async function withOperatorClient(
  flags: PlaceFlags,
  terminal: Terminal,
  work: (client: OperatorClient) => Promise<void>,
): Promise<void> {
  // Loaded only when it is needed: --help should not wait for a client of Redis.
  const { operatorClient } = await import('./operator-client.js')
  const warnings: string[] = []
  const client = await operatorClient(flags, message => warnings.push(message))
  try {
    await work(client)
    for (const warning of warnings) terminal.complain(`headgate: ${warning}`)
  } catch (error) {
    throw inOptions(error)
  } finally {
    await client.close()
  }
}
