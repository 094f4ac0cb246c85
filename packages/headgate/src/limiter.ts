import { type Clock, systemClock } from './clock.js'
import { Decision } from './decision/decision.js'
import type { Answer, Check, Question } from './engine/question.js'
import { HeadgateError, show } from './errors.js'
import { type Policy, type PolicyOptions, parsePolicies, parseTiers } from './policy/policies.js'
import type { TierOptions } from './policy/tiers.js'
import type { FailureMode } from './store/guard/failure.js'
import { memoryStore } from './store/memory/memory-store.js'
import type { Store } from './store/store.js'
import { createSubjectNamer, type SubjectInput, type SubjectOptions } from './subject/subject.js'

export interface LimiterOptions<
  Policies extends Record<string, PolicyOptions>,
  Tiers extends Record<string, TierOptions>,
> {
  /** Where limits are kept. Left out: in this process, the embedded store. */
  readonly store?: Store
  readonly policies?: Policies
  /** Classes of caller; `defaultTiers` is a set to start from. */
  readonly tiers?: Tiers
  /** How subjects become names, and which of them are secrets. */
  readonly subject?: SubjectOptions
  readonly clock?: Clock
}

/** What is asked: a policy or a tier by its name, and for what. */
export type Ask<PolicyName extends string, TierName extends string> = (
  | { readonly policy: PolicyName; readonly tier?: undefined }
  | { readonly tier: TierName; readonly policy?: undefined }
) & {
  /** What is asked for; `global` is one budget for everything. */
  readonly scope?: string
  /** Units the request takes. Default 1. */
  readonly cost?: number
  /** What decides when the store cannot be asked; the store's own default (`local`) when left out. */
  readonly onStoreFailure?: FailureMode
}

export interface Limiter<PolicyName extends string, TierName extends string> {
  /** Charges the request if every limit has room for it. A denial is a decision, never an error. */
  check(subject: SubjectInput, ask: Ask<PolicyName, TierName>): Promise<Decision>
  /** Says what `check` would and changes nothing; `remaining` is what is left before the request. */
  peek(subject: SubjectInput, ask: Ask<PolicyName, TierName>): Promise<Decision>
  /** Gives back what a decision charged, or `units` of it, as far as it still counts. Returns the units. */
  refund(decision: Decision, units?: number): Promise<number>
  /** Forgets what the subject has used. */
  reset(subject: SubjectInput, ask: Omit<Ask<PolicyName, TierName>, 'cost'>): Promise<void>
  close(): Promise<void>
}

const MAX_COST = 2 ** 32 - 1
const NO_CHECKS: readonly Check[] = []

/** Builds a limiter. Policy and tier names that do not exist do not compile, and throw where types are not checked. */
export function createLimiter<
  const Policies extends Record<string, PolicyOptions> = Record<never, PolicyOptions>,
  const Tiers extends Record<string, TierOptions> = Record<never, TierOptions>,
>(options: LimiterOptions<Policies, Tiers>): Limiter<keyof Policies & string, keyof Tiers & string> {
  const policies = parsePolicies(options.policies ?? {})
  const tiers = parseTiers(options.tiers ?? {})
  if (policies.size + tiers.size === 0) {
    throw new HeadgateError(
      'ERR_HEADGATE_INVALID_OPTION',
      'policies: expected at least one policy or tier; got none',
    )
  }
  const store = options.store ?? memoryStore()
  const clock = store.clock ?? options.clock ?? systemClock
  const nameSubject = createSubjectNamer(options.subject)
  const refunded = new WeakMap<Decision, number>()
  let closed = false

  type AnyAsk = Ask<string, string>

  function policyOf(ask: AnyAsk): Policy {
    const policy = ask.policy === undefined ? tiers.get(ask.tier) : policies.get(ask.policy)
    if (policy !== undefined) return policy
    if (ask.policy !== undefined) throw unknownName('policy', ask.policy, policies)
    throw unknownName('tier', ask.tier, tiers)
  }

  function checksOf(policy: Policy, subjectInput: SubjectInput, ask: AnyAsk, cost: number): Check[] {
    const subject = nameSubject(subjectInput)
    const scope = ask.scope ?? 'global'
    if (typeof scope !== 'string' || scope === '') {
      throw new HeadgateError(
        'ERR_HEADGATE_INVALID_OPTION',
        `scope: expected a non-empty string; got ${show(scope)}`,
      )
    }
    return policy.limits.map(({ name, limit }) => ({ subject, scope, name, limit, cost }))
  }

  function decisionOf(question: Question, answer: Answer, policy: Policy, cost: number): Decision {
    const decidedAtUs = answer.nowUs ?? clock.nowUs()
    return new Decision({
      question,
      answer,
      policy,
      cost,
      source: answer.source ?? store.source,
      clock,
      decidedAtUs,
    })
  }

  /** Not an async function: the embedded store answers at once, and one promise is all such a decision costs. */
  function ask(how: 'decide' | 'peek', subject: SubjectInput, ask: AnyAsk): Promise<Decision> {
    try {
      if (closed)
        throw new HeadgateError('ERR_HEADGATE_CLOSED', 'limiter: expected an open limiter; it was closed')
      const cost = parseCost(ask.cost)
      const policy = policyOf(ask)
      const checks = checksOf(policy, subject, ask, cost)
      const question: Question =
        ask.onStoreFailure === undefined
          ? { alternatives: [checks], shadow: NO_CHECKS }
          : {
              alternatives: [checks],
              shadow: NO_CHECKS,
              onStoreFailure: parseFailureMode(ask.onStoreFailure),
            }
      const answer = how === 'decide' ? store.decide(question) : store.peek(question)
      return answer instanceof Promise
        ? answer.then(settled => decisionOf(question, settled, policy, cost))
        : Promise.resolve(decisionOf(question, answer, policy, cost))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  return {
    check: (subject, options) => ask('decide', subject, options as AnyAsk),
    peek: (subject, options) => ask('peek', subject, options as AnyAsk),

    async refund(decision, units = decision.cost) {
      const charges = Decision.chargesOf(decision)
      if (charges.length === 0) {
        throw new HeadgateError(
          'ERR_HEADGATE_NOT_CHARGED',
          'decision: expected one that charged; this one did not',
        )
      }
      if (!Number.isInteger(units) || units < 1 || units > decision.cost) {
        throw invalidCost('units', `a whole number from 1 to the decision's cost ${decision.cost}`, units)
      }
      // A decision is given back once: a second refund of it would take another request's units.
      const already = refunded.get(decision) ?? 0
      const due = Math.min(units, decision.cost - already)
      if (due === 0) return 0
      refunded.set(decision, already + due)
      const given = await store.refund(
        charges.map(({ check, chargedAtUs }) => ({ check, units: due, chargedAtUs })),
      )
      return Math.max(0, ...given)
    },

    async reset(subject, options) {
      const policy = policyOf(options as AnyAsk)
      await store.reset(checksOf(policy, subject, options as AnyAsk, 0))
    },

    async close() {
      if (closed) return
      closed = true
      await store.close()
    },
  }
}

function parseFailureMode(mode: unknown): FailureMode {
  if (mode === 'local' || mode === 'open' || mode === 'closed') return mode
  throw new HeadgateError(
    'ERR_HEADGATE_INVALID_OPTION',
    `onStoreFailure: expected 'local', 'open' or 'closed'; got ${show(mode)}`,
  )
}

function parseCost(cost: unknown): number {
  if (cost === undefined) return 1
  if (typeof cost === 'number' && Number.isInteger(cost) && cost >= 0 && cost <= MAX_COST) return cost
  throw invalidCost('cost', `a whole number from 0 to ${MAX_COST}`, cost)
}

function invalidCost(field: string, expected: string, got: unknown): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_INVALID_COST', `${field}: expected ${expected}; got ${show(got)}`)
}

function unknownName(
  kind: 'policy' | 'tier',
  got: unknown,
  known: ReadonlyMap<string, Policy>,
): HeadgateError {
  return new HeadgateError(
    kind === 'policy' ? 'ERR_HEADGATE_UNKNOWN_POLICY' : 'ERR_HEADGATE_UNKNOWN_TIER',
    `${kind}: expected one of ${[...known.keys()].join(', ') || 'none'}; got ${show(got)}`,
  )
}
