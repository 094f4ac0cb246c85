/** Commands about one caller: `check`, `inspect` and `reset`. */
import type { Command } from 'commander'
import type { CheckOptions, SubjectInput } from 'headgate'
import { isReference, printable } from 'headgate/internal'
import { limitOwner } from '../gateway/quota-words.js'
import type { DecisionValue, Question, RejectedSubject } from '../operators/operator-client.js'
import { numberOf } from './number-options.js'
import { answer, at, type OperatorFlags, withOperatorClient } from './operator-command.js'
import type { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

interface AskFlags {
  readonly policy?: string
  readonly tier?: string
  readonly scope?: string
}

interface CheckFlags extends AskFlags {
  readonly method?: string
  readonly path?: string
  readonly cost?: string
  readonly peek?: boolean
}

/** The request was denied, and the command has printed so. */
export class DeniedError extends Error {}

/** Adds `headgate check`, `headgate inspect` and `headgate reset`. */
export function addSubjectCommands(program: Command, terminal: Terminal): void {
  asked(at(program.command('check')))
    .description('Ask for a decision, as an app would, and charge it.')
    .argument('<subject>', 'who is asking: type:id, such as user:42, or the reference of a denial')
    .option('--method <name>', 'of a request, for which the rules choose the limits')
    .option('--path <path>', 'of a request, for which the rules choose the limits')
    .option('--cost <units>', 'units the request takes (default: 1, or as the rules say)')
    .option('--peek', 'only look: charge nothing')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nThe exit code is 0 for an allowed request and 5 for a denied one.\n\nExamples:\n  headgate check user:42 --policy api\n  headgate check user:42 --method POST --path /login --peek',
    )
    .action((subject: string, flags: OperatorFlags & CheckFlags) => check(subject, flags, terminal))
  at(program.command('inspect'))
    .description(
      'Show what a subject has used of each limit, when it is free again, and where that is stored.',
    )
    .argument('<subject>', 'type:id, such as user:42, or the reference of a denial')
    .option('-t, --tier <name>', "the caller's tier, if a session or a key would name it")
    .option('--scope <name>', 'one more scope to look at')
    .allowExcessArguments(false)
    .addHelpText(
      'after',
      '\nExamples:\n  headgate inspect user:42\n  headgate inspect k7qf2m9xabcd\n  headgate inspect ip:192.0.2.1 --redis redis://127.0.0.1:6379 --config headgate.yaml',
    )
    .action((subject: string, flags: OperatorFlags & Omit<AskFlags, 'policy'>) =>
      withOperatorClient(flags, terminal, async client => {
        if (isReference(subject)) {
          const rejected = await client.rejected(subject)
          return answer(terminal, flags, rejected, rejectedWords(rejected))
        }
        const { tier, scope } = flags
        const options = { ...(tier !== undefined && { tier }), ...(scope !== undefined && { scope }) }
        const found = await client.inspect(subject as SubjectInput, options)
        const keys = found.limits.flatMap(({ key }) => (key === null ? [] : [`  ${printable(key)}`]))
        const where = keys.length === 0 ? '' : `\nkept in Redis under\n${keys.join('\n')}`
        answer(terminal, flags, found, `${found.text}${where}`)
      }),
    )
  asked(at(program.command('reset')))
    .description('Clear what a subject has used: everything, or one policy or tier.')
    .argument('<subject>', 'type:id, such as user:42, or the reference of a denial')
    .allowExcessArguments(false)
    .addHelpText('after', '\nExamples:\n  headgate reset user:42\n  headgate reset user:42 --policy login')
    .action((subject: string, flags: OperatorFlags & AskFlags) =>
      withOperatorClient(flags, terminal, async client => {
        await client.reset(subject as SubjectInput, isNamed(flags) ? askOf(flags) : undefined)
        answer(terminal, flags, { reset: true }, 'forgotten: every limit starts afresh')
      }),
    )
}

function asked(command: Command): Command {
  return command
    .option('--policy <name>', 'a policy of the file')
    .option('-t, --tier <name>', 'a tier of the file')
    .option('--scope <name>', 'which budget (default: global)')
}

async function check(subject: string, flags: OperatorFlags & CheckFlags, terminal: Terminal): Promise<void> {
  const question = checksOfRequest(subject as SubjectInput, flags)
  await withOperatorClient(flags, terminal, async client => {
    const decision = await client.decide(flags.peek ? 'peek' : 'check', question)
    answer(terminal, flags, decision, decisionWords(decision))
    if (!decision.allowed) throw new DeniedError('denied')
  })
}

function isNamed({ policy, tier, scope }: AskFlags): boolean {
  return policy !== undefined || tier !== undefined || scope !== undefined
}

function askOf({
  policy,
  tier,
  scope,
  redis,
  config,
}: OperatorFlags & AskFlags): CheckOptions<string, string> {
  if ((policy === undefined) === (tier === undefined)) {
    throw new UsageError({ field: '--policy', expected: 'one of --policy and --tier', got: 'none or both' })
  }
  if (policy !== undefined && redis !== undefined && config === undefined) {
    throw new UsageError({
      field: '--config',
      expected: 'the policy file that has the policy, beside --redis',
      got: 'none',
    })
  }
  const name = policy === undefined ? { tier } : { policy }
  return { ...name, ...(scope !== undefined && { scope }) } as CheckOptions<string, string>
}

function checksOfRequest(subject: SubjectInput, flags: OperatorFlags & CheckFlags): Question {
  const { method, path, tier, policy } = flags
  if ([method, path, tier, policy].every(flag => flag === undefined)) {
    throw new UsageError({
      field: '--policy',
      expected: '--policy, --tier, or --method and --path of a request that the rules speak for',
      got: 'none',
    })
  }
  const cost = flags.cost === undefined ? {} : { cost: numberOf('--cost', flags.cost) }
  if (path === undefined && method === undefined) return { subject, ask: { ...askOf(flags), ...cost } }
  if (path === undefined)
    throw new UsageError({ field: '--path', expected: 'together with --method', got: 'none' })
  if (policy !== undefined) {
    throw new UsageError({ field: '--policy', expected: 'without --path, of which the rules speak' })
  }
  const { scope } = flags
  const facts = {
    path,
    ...(method !== undefined && { method }),
    ...(tier !== undefined && { tier }),
    ...(scope !== undefined && { scope }),
    ...cost,
  }
  return { subject, request: facts }
}

/** Formats `allowed: 9 of 10 left by policy api, resets in 60 s`. */
function decisionWords(decision: DecisionValue): string {
  const { allowed, limit, remaining, retryAfterMs, resetAfterMs, reason } = decision
  const whose = limitOwner(decision)
  if (allowed) {
    if (limit === null || !Number.isFinite(limit)) return `allowed: ${reason}`
    return `allowed: ${remaining} of ${limit} left by ${whose}, resets in ${seconds(resetAfterMs)}`
  }
  const next = retryAfterMs === null ? 'retrying will not help' : `next in ${seconds(retryAfterMs)}`
  return `denied by ${whose}: ${reason}, ${next}`
}

function seconds(ms: number): string {
  return `${Math.ceil(ms / 1000)} s`
}

/** Describes in lines who was rejected, what is left of its limits, and why. */
function rejectedWords({ subject, reference, tier, limits, denials }: RejectedSubject): string {
  const rejected = denials.map(
    ({ atMs, policy, limit, reason }) =>
      `rejected ${new Date(atMs).toISOString()}: ${reason}, ${limit ?? `policy ${policy}`}`,
  )
  const head = `${subject}, reference ${reference}, tier ${tier ?? 'none'}`
  return [head, ...limits.map(({ text }) => `  ${text}`), ...rejected].map(line => printable(line)).join('\n')
}
