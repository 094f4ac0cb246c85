import { writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import type { Command } from 'commander'
import { POLICY_TEMPLATE } from './policy-template.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

interface InitFlags {
  readonly from?: string
  readonly force?: boolean
  readonly stdout?: boolean
  readonly json?: boolean
}

/** Adds `headgate init`. */
export function addInitCommand(program: Command, terminal: Terminal): void {
  program
    .command('init')
    .description('Write a first policy file, with comments that explain every part.')
    .argument('[file]', 'file to write; an existing one is kept', 'headgate.yaml')
    .option('--from <path>', 'convert a file of envoyproxy/ratelimit, or a folder of them')
    .option('--force', 'replace an existing file')
    .option('--stdout', 'print it instead')
    .option('--json', 'print the result as JSON')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nExamples:\n  headgate init\n  headgate init limits.yaml && headgate serve -c limits.yaml --demo\n  headgate init --from ratelimit/edge.yaml',
    )
    .action((file: string, flags: InitFlags) => init(file, flags, terminal))
}

async function init(file: string, flags: InitFlags, terminal: Terminal): Promise<void> {
  const { text, left } =
    flags.from === undefined ? { text: POLICY_TEMPLATE, left: 0 } : await convert(flags.from)
  if (flags.stdout) return terminal.print(text.trimEnd())
  await write(file, text, flags.force === true)
  const notes = left === 0 ? '' : `; ${left} of its limits became no rule, and it says why`
  const next = `try it with: headgate serve --config ${file} --demo`
  const answer = flags.from === undefined ? { file } : { file, left }
  terminal.print(flags.json ? JSON.stringify(answer) : `${file} is written${notes}; ${next}`)
}

/** Loaded on demand, because most start without a file to convert. */
async function convert(path: string): Promise<{ readonly text: string; readonly left: number }> {
  const { loadDescriptors } = await import('../envoy/config/load-descriptors.js')
  const { convertDescriptors } = await import('../envoy/convert/convert-descriptors.js')
  const { policyText } = await import('../envoy/convert/policy-text.js')
  const { parseConfig } = await import('headgate/config')
  const converted = convertDescriptors(await loadDescriptors(path))
  const text = policyText(converted, basename(path))
  // Reports now, not when it is served, whatever a policy file does not accept.
  await parseConfig(text, `${basename(path)}, converted`)
  return { text, left: converted.left.length }
}

async function write(file: string, text: string, force: boolean): Promise<void> {
  try {
    await writeFile(file, text, { flag: force ? 'w' : 'wx' })
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') {
      throw new UsageError(`${file}: exists already; --force replaces it`)
    }
    throw new UsageError({ field: file, expected: 'a place for a file', got: code ?? message })
  }
}
