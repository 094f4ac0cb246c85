import { stat, writeFile } from 'node:fs/promises'
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Config } from 'headgate'
import { LOG_FORMATS, type LogFormat } from '../simulate/log-format.js'
import type { Replay } from '../simulate/replay.js'
import { PATTERNS, type Pattern } from '../simulate/synthetic.js'
import { createProgress, type Progress } from './progress.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

interface SimulateFlags {
  readonly config: string
  readonly against?: string
  readonly format?: LogFormat
  readonly synthetic?: Pattern
  readonly rate: number
  readonly callers: number
  readonly seconds: number
  readonly seed: number
  readonly top: number
  readonly html?: string
  readonly json?: boolean
}

const EXAMPLES = `
Examples:
  headgate simulate /var/log/nginx/access.log
  zcat access.log.*.gz | headgate simulate - --config next.yaml --html report.html
  headgate simulate access.log --config headgate.yaml --against next.yaml
  headgate simulate --synthetic abuse --rate 200 --callers 500 --seconds 3600`

/** Adds `headgate simulate`. */
export function addSimulateCommand(program: Command, terminal: Terminal): void {
  program
    .command('simulate')
    .description(
      'Replay an access log against a policy file, and show who would have been denied, when and how often.',
    )
    .argument('[log]', 'an access log, or - for standard input')
    .option('-c, --config <file>', 'policy file', 'headgate.yaml')
    .option('--against <file>', 'another policy file, to compare')
    .addOption(
      new Option('--format <name>', 'format of the log (default: detected from its first line)').choices(
        LOG_FORMATS,
      ),
    )
    .addOption(
      new Option('--synthetic <pattern>', 'generated traffic instead of a log: GET / from addresses').choices(
        PATTERNS,
      ),
    )
    .option('--rate <number>', 'with --synthetic: requests a second in all', parseCount, 50)
    .option('--callers <number>', 'with --synthetic: how many addresses they come from', parseCount, 100)
    .option('--seconds <number>', 'with --synthetic: for how long', parseCount, 600)
    .option('--seed <number>', 'with --synthetic: the same number makes the same traffic', parseCount, 1)
    .option('--top <number>', 'how many callers are listed', parseCount, 10)
    .option('--html <file>', 'write the report as a page, too')
    .option('--json', 'print the report as JSON')
    .allowExcessArguments(false)
    .addHelpText('after', EXAMPLES)
    .action((log: string | undefined, flags: SimulateFlags) => simulate(log, flags, terminal))
}

async function simulate(log: string | undefined, flags: SimulateFlags, terminal: Terminal): Promise<void> {
  if ((log === undefined) === (flags.synthetic === undefined)) {
    throw new UsageError({
      field: 'log',
      expected: 'a file, - for standard input, or --synthetic',
      got: 'none of them or two',
    })
  }
  // Loaded on demand, so that --help does not wait for it.
  const { Replay } = await import('../simulate/replay.js')
  const { textReport } = await import('../simulate/report-text.js')
  const files = await loadFiles([flags.config, ...(flags.against === undefined ? [] : [flags.against])])
  const replay = new Replay(files)
  const progress = createProgress(process.stderr)
  try {
    if (log === undefined) await playSynthetic(replay, flags, progress)
    else await playLog(replay, log, flags, progress)
    progress.done()
    const outcome = replay.outcome()
    if (flags.html !== undefined) await writeHtml(flags.html, outcome, flags)
    if (flags.json) {
      const { jsonReport } = await import('../simulate/report-json.js')
      terminal.print(JSON.stringify(jsonReport(outcome, flags)))
    } else terminal.print(textReport(outcome, flags))
  } finally {
    progress.done()
    await replay.close()
  }
}

async function loadFiles(names: readonly string[]): Promise<readonly { name: string; config: Config }[]> {
  const { loadConfig } = await import('headgate/config')
  return Promise.all(names.map(async name => ({ name, config: await loadConfig(name) })))
}

async function playLog(replay: Replay, log: string, flags: SimulateFlags, progress: Progress): Promise<void> {
  const { createLineReader, formatOf } = await import('../simulate/log-format.js')
  const { openLog, readLines } = await import('../simulate/read-lines.js')
  const bytes = log === '-' ? null : await sizeOf(log)
  let read = flags.format === undefined ? null : createLineReader(flags.format)
  let isFirst = true
  for await (const { lines, bytesRead } of readLines(openLog(log))) {
    for (const line of lines) {
      read ??= createLineReader(formatOf(line))
      const request = read(line)
      if (request !== null) await replay.play(request)
      // The first line of a CSV names its columns.
      else if (!isFirst) replay.passOver()
      isFirst = false
    }
    progress.show({
      doneShare: bytes === null ? null : bytesRead / bytes,
      requests: replay.outcome().requests,
    })
  }
}

async function playSynthetic(replay: Replay, flags: SimulateFlags, progress: Progress): Promise<void> {
  const { synthesize } = await import('../simulate/synthetic.js')
  const { synthetic: pattern = 'steady', rate, callers, seconds, seed } = flags
  const expected = rate * seconds
  let requests = 0
  for (const request of synthesize({ pattern, rate, callers, seconds, seed })) {
    await replay.play(request)
    if (++requests % 10_000 === 0) progress.show({ doneShare: Math.min(1, requests / expected), requests })
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    const found = await stat(file)
    if (found.isDirectory()) throw new UsageError({ field: file, expected: 'a file', got: 'a folder' })
    return Math.max(1, found.size)
  } catch (error) {
    if (error instanceof UsageError) throw error
    throw new UsageError({
      field: file,
      expected: 'a log that can be read',
      got: (error as NodeJS.ErrnoException).code,
    })
  }
}

async function writeHtml(
  file: string,
  outcome: ReturnType<Replay['outcome']>,
  flags: SimulateFlags,
): Promise<void> {
  const { htmlReport } = await import('../simulate/report-html.js')
  try {
    await writeFile(file, htmlReport(outcome, flags))
  } catch (error) {
    throw new UsageError({
      field: '--html',
      expected: 'a place for a file',
      got: (error as NodeJS.ErrnoException).code,
    })
  }
}

function parseCount(text: string): number {
  if (/^\d{1,9}$/.test(text) && Number(text) > 0) return Number(text)
  throw new InvalidArgumentError(`expected a whole number from 1 to 999999999; got "${text.slice(0, 40)}".`)
}
