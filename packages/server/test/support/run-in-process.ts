import { runProgram } from '../../src/cli/program.js'
import { createTerminal } from '../../src/cli/terminal.js'

/** Runs a command line in this process, for the many that end at once: starting Node takes longer than they do. */
export async function runInProcess(
  args: readonly string[],
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const written = { out: '', err: '' }
  const collect = (name: 'out' | 'err') => ({
    write(text: string) {
      written[name] += text
    },
  })
  const code = await runProgram(args, createTerminal(collect('out'), collect('err')))
  return { code, ...written }
}
