import type { Command } from 'commander'
import { printable } from 'headgate/internal'
import type { OperatorClient } from '../operators/operator-client.js'
import { inOptions } from './in-option.js'
import type { Terminal } from './terminal.js'

/** The flags that say where a command is executed. */
export interface OperatorFlags {
  readonly server?: string
  readonly redis?: string
  readonly config?: string
  readonly subjectSecretFile?: string
  readonly tokenFile?: string
  readonly json?: boolean
}

/** Adds the options of a command that runs against a server or Redis. */
export function at(command: Command): Command {
  return command
    .option(
      '-s, --server <url>',
      "the decision API of a running headgate serve (default: HEADGATE_SERVER's, or http://127.0.0.1:8082)",
    )
    .option('--token-file <file>', "with --server: the token to call it with (default: HEADGATE_TOKEN's)")
    .option('--redis <url>', 'work on Redis directly, without a server')
    .option('-c, --config <file>', 'with --redis: the policy file that gives the names')
    .option('--subject-secret-file <file>', "with --redis: the servers' secret for hashing API keys")
    .option('--json', 'print the answer as JSON')
}

/** Prints an answer: as JSON for scripts, else in words. */
export function answer(terminal: Terminal, { json }: OperatorFlags, value: unknown, words: string): void {
  terminal.print(json ? printable(JSON.stringify(value)) : words)
}

/** Runs the work against the place that the flags name. Rejections are reported in the words of the command line. */
export async function withOperatorClient(
  flags: OperatorFlags,
  terminal: Terminal,
  work: (client: OperatorClient) => Promise<void>,
): Promise<void> {
  // Loaded on demand, so that --help does not wait for a Redis client.
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
