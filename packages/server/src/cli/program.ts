import { Command, CommanderError, InvalidArgumentError } from 'commander'
import { isHeadgateError } from 'headgate'
import { addOperatorCommands } from './operator-commands.js'
import { addRulesCommands } from './rules-commands.js'
import type { ServeFlags } from './serve.js'
import { UsageError } from './usage-error.js'
import { readVersion } from './version.js'

const EXIT_OK = 0
const EXIT_FAILURE = 1
/** The command line or the policy file is wrong. */
const EXIT_USAGE = 2
const CONFIG_ERRORS = ['ERR_HEADGATE_INVALID_CONFIG', 'ERR_HEADGATE_UNREADABLE_CONFIG']

/** Runs a command line and resolves to the exit code. Never throws: what went wrong is on stderr. */
export async function runProgram(args: readonly string[]): Promise<number> {
  try {
    await buildProgram().parseAsync(args, { from: 'user' })
    return EXIT_OK
  } catch (error) {
    // commander has said it already, and ends --help and --version this way too.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT_OK : EXIT_USAGE
    process.stderr.write(`headgate: ${(error as Error).message}\n`)
    return isOfTheUser(error) ? EXIT_USAGE : EXIT_FAILURE
  }
}

function isOfTheUser(error: unknown): boolean {
  return error instanceof UsageError || (isHeadgateError(error) && CONFIG_ERRORS.includes(error.code))
}

function buildProgram(): Command {
  const program = new Command('headgate')
    .description('Rate limiting for HTTP APIs: a gateway, and decisions over HTTP.')
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .showHelpAfterError('(--help lists what there is)')
    .exitOverride()
  program
    .command('serve')
    .description('Stand in front of an HTTP service and let through what the policy file allows.')
    .option('-c, --config <file>', 'policy file (default: "headgate.yaml"; with --demo it may be missing)')
    .option('--host <address>', 'address the gateway listens on', '127.0.0.1')
    .option('-p, --port <number>', 'port the gateway listens on; 0 chooses a free one', parsePort, 8080)
    .option('-u, --upstream <url>', 'where requests go; takes the place of the one in the file')
    .option('--redis <url>', 'share the limits through Redis; left out: they are kept in this process')
    .option('--demo', 'use the small built-in upstream if none is configured')
    .option('--admin-port <number>', 'port of the decision API, on 127.0.0.1 always', parsePort, 8082)
    .allowExcessArguments(false)
    .action(async (flags: ServeFlags) => {
      // Loaded only when it is needed: --help should not wait for a server.
      const { serve } = await import('./serve.js')
      await serve(flags)
    })
  addOperatorCommands(program)
  addRulesCommands(program)
  return program
}

function parsePort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new InvalidArgumentError(`expected a whole number from 0 to 65535; got "${text}".`)
}
