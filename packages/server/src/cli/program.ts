import cluster from 'node:cluster'
import { Command, CommanderError, Option } from 'commander'
import { isHeadgateError } from 'headgate'
import { shownName } from 'headgate/internal'
import { isCallersMistake, isStoreFailure } from '../admin/failure-answer.js'
import { NotHeadgateError, UnavailableError } from '../operators/operator-errors.js'
import { addAdminFlags } from './admin-flags.js'
import { addAlertFlags } from './alert-flags.js'
import { addBoundFlags } from './bound-flags.js'
import { addCompletionCommand } from './completion-command.js'
import { addControlCommand } from './control-command.js'
import { addDoctorCommand } from './doctor-command.js'
import { addDrainFlags } from './drain-flags.js'
import { addEnvoyFlags } from './envoy-flags.js'
import { inVariable, takeFlagsFrom, unknownVariables } from './flags-from-environment.js'
import { addFunctionsCommand } from './functions-command.js'
import { addInitCommand } from './init-command.js'
import { parsePort, wholeNumber } from './number-options.js'
import { addOverrideCommand } from './override-command.js'
import { addRedisFlags } from './redis-flags.js'
import { addRestoreCommand } from './restore-command.js'
import { addRulesCommands } from './rules-commands.js'
import type { ServeFlags } from './serve.js'
import { addSimulateCommand } from './simulate-command.js'
import { addSubjectCommands, DeniedError } from './subject-commands.js'
import { createTerminal, type Terminal } from './terminal.js'
import { addUsageCommands } from './usage-commands.js'
import { UsageError } from './usage-error.js'
import { readVersion } from './version.js'
import { addWatchCommands } from './watch-commands.js'
import { addWhyCommand } from './why-command.js'

/** The exit codes of commands, explained in `docs/reference/cli.md`. */
const EXIT = { ok: 0, failure: 1, usage: 2, unavailable: 3, notHeadgate: 4, denied: 5 }

/** Runs a command line and resolves to the exit code. Never throws: errors are printed. */
export async function runProgram(
  args: readonly string[],
  terminal: Terminal = createTerminal(process.stdout, process.stderr),
): Promise<number> {
  try {
    await buildProgram(terminal).parseAsync(args, { from: 'user' })
    return EXIT.ok
  } catch (error) {
    // commander has printed it already, and ends --help and --version this way too.
    if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
    if (error instanceof DeniedError) return EXIT.denied
    terminal.complain(`headgate: ${(error as Error).message}`)
    return exitCodeOf(error)
  }
}

function exitCodeOf(error: unknown): number {
  if (error instanceof UsageError) return EXIT.usage
  if (error instanceof UnavailableError) return EXIT.unavailable
  if (error instanceof NotHeadgateError) return EXIT.notHeadgate
  if (!isHeadgateError(error)) return EXIT.failure
  if (isCallersMistake(error)) return EXIT.usage
  return isStoreFailure(error) ? EXIT.unavailable : EXIT.failure
}

function buildProgram(terminal: Terminal): Command {
  const program = new Command('headgate')
    .description('Rate limiting for HTTP APIs: a gateway, and decisions over HTTP.')
    .version(readVersion(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'print this help')
    .helpCommand('help [command]', 'print the help of a command')
    .showHelpAfterError('(--help lists what there is)')
    .configureOutput({
      writeOut: text => terminal.print(text.trimEnd()),
      writeErr: text => terminal.complain(withoutSecrets(text.trimEnd())),
    })
    .exitOverride()
  const serveCommand = program
    .command('serve')
    .description('Stand in front of an HTTP service and let through what the policy file allows.')
    .option('-c, --config <file>', 'policy file (default: "headgate.yaml"; with --demo it may be missing)')
    .option('--host <address>', 'address the gateway listens on', '127.0.0.1')
    .option('-p, --port <number>', 'port the gateway listens on; 0 chooses a free one', parsePort, 8080)
    .option(
      '--workers <number>',
      'processes that serve the gateway and Envoy; more than one needs --redis',
      wholeNumber(1, 64),
      1,
    )
    .option('--tls-cert <file>', 'certificate of the gateway, with its chain, in PEM')
    .option('--tls-key <file>', 'its key, in PEM')
    .option('-u, --upstream <url>', 'where requests go; replaces the one in the file')
    .option('--upstream-ca <file>', 'an authority to trust for https upstreams, in PEM')
    .option('--service <name>', 'the name of this program, if several programs share a Redis')
    .option(
      '--subject-secret-file <file>',
      'file with the secret for hashing API keys, 16 characters or more',
    )
    .addOption(
      new Option('--log-format <format>', 'lines for people, or JSON')
        .choices(['text', 'json'])
        .default('text'),
    )
    .option('--access-log', 'write a line for every request')
    .option('--demo', 'use the small built-in upstream if none is configured')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nEvery flag may be set in the environment: --admin-port as HEADGATE_ADMIN_PORT.\n\nExamples:\n  headgate serve --demo\n  headgate serve --upstream http://127.0.0.1:3000 --redis redis://127.0.0.1:6379 --workers 4\n  headgate serve --host 0.0.0.0 --admin-host 0.0.0.0 --admin-token prometheus:read:file:/run/secrets/prometheus',
    )
    .hook('preAction', command => {
      takeFlagsFrom(process.env, command)
      // Workers have the environment of the process that started them, which has said it.
      if (cluster.isWorker) return
      for (const line of unknownVariables(process.env, command)) terminal.complain(`headgate: ${line}`)
    })
    .action(async (flags: ServeFlags, command: Command) => {
      // Loaded on demand, so that --help does not wait for a server.
      const { serve } = await import('./serve.js')
      const isGiven = (name: string) => command.getOptionValueSource(name) !== 'default' && name in flags
      await serve(flags, terminal, isGiven).catch(error => {
        throw inVariable(error, command)
      })
    })
  addRedisFlags(serveCommand)
  addAdminFlags(serveCommand)
  addAlertFlags(serveCommand)
  addEnvoyFlags(serveCommand)
  addBoundFlags(serveCommand)
  addDrainFlags(serveCommand)
  addInitCommand(program, terminal)
  addControlCommand(program, terminal)
  addOverrideCommand(program, terminal)
  addWhyCommand(program, terminal)
  addRestoreCommand(program, terminal)
  addWatchCommands(program, terminal)
  addDoctorCommand(program, terminal)
  addRulesCommands(program, terminal)
  addSimulateCommand(program, terminal)
  addSubjectCommands(program, terminal)
  addUsageCommands(program, terminal)
  addFunctionsCommand(program, terminal)
  addCompletionCommand(program, terminal)
  return program
}

/**
 * Commander repeats words it does not know, and they may be secrets: a subject typed as a command, a value after an
 * option's =.
 */
function withoutSecrets(complaint: string): string {
  return complaint
    .replace(/^(error: unknown option '[^'=]*)=[^\n]*'/, "$1=…'")
    .replace(/^(error: unknown command ')([^\n]*)'/, (_, start, name) => `${start}${shownName(name)}'`)
}
