import { writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import { POLICY_TEMPLATE } from './policy-template.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

interface InitFlags {
  readonly force?: boolean
  readonly stdout?: boolean
  readonly json?: boolean
}

/** Adds `headgate init`. */
export function addInitCommand(program: Command, terminal: Terminal): void {
  program
    .command('init')
    .description('Write a policy file to begin with, in which comments explain every part.')
    .argument('[file]', 'where to; what is there already is kept', 'headgate.yaml')
    .option('--force', 'replace a file that is there')
    .option('--stdout', 'print it instead')
    .option('--json', 'say as JSON what was written')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nExamples:\n  headgate init\n  headgate init limits.yaml && headgate serve -c limits.yaml --demo',
    )
    .action(async (file: string, flags: InitFlags) => {
      if (flags.stdout) return terminal.print(POLICY_TEMPLATE.trimEnd())
      await write(file, flags.force === true)
      const next = `try it with: headgate serve --config ${file} --demo`
      terminal.print(flags.json ? JSON.stringify({ file }) : `${file} is written; ${next}`)
    })
}

async function write(file: string, force: boolean): Promise<void> {
  try {
    await writeFile(file, POLICY_TEMPLATE, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') {
      throw new UsageError(`${file}: expected no such file; got one, which --force would replace`)
    }
    throw new UsageError(`${file}: expected a place for a file; got ${code ?? message}`)
  }
}
