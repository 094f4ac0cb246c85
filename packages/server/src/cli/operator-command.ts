import type { Command } from 'commander'
import { printable } from 'headgate/internal'
import type { OperatorClient, ServerClient } from '../operators/operator-client.js'
import { inOptions } from './in-option.js'
import type { Terminal } from './terminal.js'

/** The flags that say which server executes a command. */
export interface ServerFlags {
  readonly server?: string
  readonly tokenFile?: string
  readonly json?: boolean
}

/** The flags that say where a command is executed. */
export interface OperatorFlags extends ServerFlags {
  readonly redis?: string
  readonly config?: string
  readonly subjectSecretFile?: string
}

/** Adds the options of a command that only a running server can execute. */
export function atServer(command: Command): Command {
  return inJson(onServer(command))
}

/** Adds the options of a command that runs against a server or Redis. */
export function at(command: Command): Command {
  return inJson(
    onServer(command)
      .option('--redis <url>', 'work on Redis directly, without a server')
      .option('-c, --config <file>', 'with --redis: the policy file that gives the names')
      .option('--subject-secret-file <file>', "with --redis: the servers' secret for hashing API keys"),
  )
}

/** Adds the options that name a server. */
export function onServer(command: Command): Command {
  return command
    .option(
      '-s, --server <url>',
      "the decision API of a running headgate serve (default: HEADGATE_SERVER's, or http://127.0.0.1:8082)",
    )
    .option('--token-file <file>', "with --server: the token to call it with (default: HEADGATE_TOKEN's)")
}

function inJson(command: Command): Command {
  return command.option('--json', 'print the answer as JSON')
}

/** Prints an answer: as JSON for scripts, else in words. */
export function answer(terminal: Terminal, { json }: ServerFlags, value: unknown, words: string): void {
  terminal.print(json ? printable(JSON.stringify(value)) : words)
}

/** Runs the work against the place that the flags name. Rejections are reported in the words of the command line. */
export async function withOperatorClient(
  flags: OperatorFlags,
  terminal: Terminal,
  work: (client: OperatorClient) => Promise<void>,
): Promise<void> {
  const { operatorClient } = await loadClients()
  const warnings: string[] = []
  await withClient(await operatorClient(flags, message => warnings.push(message)), work)
  for (const warning of warnings) terminal.complain(`headgate: ${warning}`)
}

/** Runs the work against the server that the flags name. Rejections are reported in the same words. */
export async function withServerClient(
  flags: ServerFlags,
  work: (client: ServerClient) => Promise<void>,
): Promise<void> {
  const { serverClient } = await loadClients()
  await withClient(await serverClient(flags), work)
}

/** Loaded on demand, so that --help does not wait for a Redis client. */
function loadClients(): Promise<typeof import('./operator-client.js')> {
  return import('./operator-client.js')
}

async function withClient<Client extends OperatorClient>(
  client: Client,
  work: (client: Client) => Promise<void>,
): Promise<void> {
  try {
    await work(client)
  } catch (error) {
    throw inOptions(error)
  } finally {
    await client.close()
  }
}
