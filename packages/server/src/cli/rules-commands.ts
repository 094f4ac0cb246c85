import type { Command } from 'commander'
import type { Config, RequestFacts, RuleLimiter, SubjectInput } from 'headgate'
import type { ConfigWarning } from 'headgate/config'
import { mistakeAt, printable, type ReadOptions } from 'headgate/internal'
import { inOptions } from './in-option.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

const DEFAULT_FILE = 'headgate.yaml'
/** Reserved for documentation, so it belongs to nobody. */
const SOMEBODY = 'ip:192.0.2.1'

interface ExplainFlags {
  readonly config: string
  readonly subject: readonly string[]
  readonly tier?: string
  readonly scope?: string
  readonly json?: boolean
}

interface ValidateFlags {
  readonly strict?: boolean
  readonly json?: boolean
}

/** A source whose callers anybody can make up. */
interface Mintable {
  readonly path: string
  readonly source: string
  readonly perAddress: number | 'off'
}

/** Adds `headgate rules` and `headgate schema`. */
export function addRulesCommands(program: Command, terminal: Terminal): void {
  const rules = program.command('rules').description('Check a policy file, or see what it does to a request.')
  rules
    .command('validate')
    .description(
      'Report every mistake in a policy file at once, everything that never takes effect, and every source whose callers anybody can make up.',
    )
    .argument('[file]', 'the policy file', DEFAULT_FILE)
    .option('--strict', 'exit with 2 if there are warnings')
    .option('--json', 'print the answer as JSON')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nExamples:\n  headgate rules validate\n  headgate rules validate --strict prod.yaml',
    )
    .action((file: string, flags: ValidateFlags) => validate(file, flags, terminal))
  rules
    .command('explain')
    .description('Show which rule a request matches, and why. Asks no store and charges nothing.')
    .argument('<method>', 'the method of the request')
    .argument('<path>', 'its path')
    .option('-c, --config <file>', 'policy file', DEFAULT_FILE)
    .option('--subject <type:id...>', 'who is asking, from the most specific to the least', [SOMEBODY])
    .option('-t, --tier <name>', "the caller's tier, if a session or a key would name it")
    .option('--scope <name>', 'the scope, if the path does not give it')
    .option('--json', 'print the answer as JSON')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nExamples:\n  headgate rules explain POST /login\n  headgate rules explain GET /search --subject user:42 ip:192.0.2.1 --tier pro --config prod.yaml',
    )
    .action(async (method: string, path: string, flags: ExplainFlags) => {
      const explained = await explain(method, path, flags)
      terminal.print(flags.json ? printable(JSON.stringify(explained)) : explained.text)
    })
  program
    .command('schema')
    .description('Print the JSON Schema of a policy file, for editors.')
    .allowExcessArguments(false)
    .action(async () => {
      const { configSchema } = await import('headgate/internal')
      terminal.print(JSON.stringify(configSchema(), null, 2))
    })
}

/** Loaded on demand, so that --help does not wait for it. */
async function load(file: string, options: ReadOptions = {}): Promise<Config> {
  const { loadConfig } = await import('headgate/config')
  return loadConfig(file, options)
}

async function validate(file: string, { strict, json }: ValidateFlags, terminal: Terminal): Promise<void> {
  const warnings: ConfigWarning[] = []
  const config = await load(file, { onWarning: warning => warnings.push(warning) })
  const { formatIssue, perAddressOf, waitWords } = await import('headgate/internal')
  const mintable = (config.identify ?? []).flatMap((described, index) => {
    const perAddress = perAddressOf(described)
    return perAddress === null ? [] : [{ path: `identify[${index}]`, source: described.source, perAddress }]
  })
  if (json) terminal.print(printable(JSON.stringify({ file, warnings, mintable })))
  else {
    for (const warning of warnings) {
      terminal.complain(`headgate: ${file}:${formatIssue(warning)} (${warning.code})`)
    }
    terminal.print(summary(file, config))
    for (const source of mintable) terminal.print(mintableWords(source))
    for (const words of accountWords(config)) terminal.print(words)
    for (const { name, wait } of config.rules) {
      if (wait !== undefined) terminal.print(`  rule ${printable(name)}: a request ${waitWords(wait)}`)
    }
  }
  if (strict && warnings.length > 0) {
    throw new UsageError({
      field: '--strict',
      expected: 'a file without warnings',
      got: count(warnings.length, 'warning'),
    })
  }
}

function summary(file: string, config: Config): string {
  const counts = [
    count(Object.keys(config.tiers).length, 'tier'),
    count(Object.keys(config.policies).length, 'policy', 'policies'),
    count(config.rules.length, 'rule'),
    count(config.subjects.size, 'subject'),
    count(config.costs.length, 'cost'),
  ]
  const enforced = config.enforcePercent === 100 ? '' : ` ${config.enforcePercent}%`
  return `${file} is sound: ${counts.join(', ')}; mode ${config.mode}${enforced}, levels ${config.levels}`
}

/** Says what holds a caller that anybody can make up. */
function mintableWords({ path, source, perAddress }: Mintable): string {
  const held =
    perAddress === 'off'
      ? 'perAddress: off says that you verify it elsewhere'
      : `so all of one address have ${perAddress} times the limits of one (perAddress)`
  return `  ${path} ${source}: anybody can make one up, ${held}`
}

/** Says what a later change of a quota does to what was used of it. */
function accountWords({ policies }: Config): string[] {
  return Object.entries(policies).flatMap(([name, { limits }]) =>
    limits.flatMap(limit => {
      const { account } = limit.algorithm
      if (account === undefined) return []
      const others = new Intl.ListFormat('en', { type: 'disjunction' }).format(account.apart)
      const described = `${printable(name)}: ${limit.algorithm.describe(limit)}`
      return `  policy ${described}: another limit keeps what was used; another ${others} starts a new period with nothing used`
    }),
  )
}

function count(number: number, one: string, many = `${one}s`): string {
  return `${number} ${number === 1 ? one : many}`
}

async function explain(
  method: string,
  path: string,
  flags: ExplainFlags,
): Promise<ReturnType<RuleLimiter['explain']>> {
  if (method.startsWith('/'))
    throw new UsageError(mistakeAt('method', 'one such as GET, then the path', method))
  if (!path.startsWith('/')) throw new UsageError(mistakeAt('path', 'one that begins with /', path))
  const config = await load(flags.config)
  if (flags.tier !== undefined && !Object.hasOwn(config.tiers, flags.tier)) {
    throw new UsageError(mistakeAt('--tier', `one of ${Object.keys(config.tiers).join(', ')}`, flags.tier))
  }
  if (flags.scope === '')
    throw new UsageError({ field: '--scope', expected: 'a non-empty string', got: '""' })
  const { createLimiter } = await import('headgate')
  // Nothing is stored, so a warning about the secret would be pointless.
  const limiter = createLimiter({ config, onWarning: () => {} })
  const facts: RequestFacts = {
    method,
    path,
    subject: flags.subject as SubjectInput[],
    ...(flags.tier !== undefined && { tier: flags.tier }),
    ...(flags.scope !== undefined && { scope: flags.scope }),
  }
  try {
    return limiter.explain(facts)
  } catch (error) {
    throw inOptions(error)
  } finally {
    await limiter.close()
  }
}
