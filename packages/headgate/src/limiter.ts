import { type Clock, systemClock } from './clock.js'
import { Decision } from './decision/decision.js'
import type { Answer, Check, Question } from './engine/question.js'
import { SingleQuestion } from './engine/single.js'
import { HeadgateError, show, unexpected } from './errors.js'
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
  /** The policies that can be asked for. */
  readonly policyNames: readonly PolicyName[]
  /** The tiers that can be asked for. */
  readonly tierNames: readonly TierName[]
  /** Charges the request if every limit has room for it. A denial is a decision, never an error. */
  check(subject: SubjectInput, ask: Ask<PolicyName, TierName>): Promise<Decision>
  /** Says what `check` would and changes nothing; `remaining` is what is left before the request. */
  peek(subject: SubjectInput, ask: Ask<PolicyName, TierName>): Promise<Decision>
  /**
   * Gives back what a decision charged, or `units` of it, as far as it still counts. Returns the units: 0 for one the
   * store did not make, and while the store cannot be asked.
   */
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
  if (typeof options !== 'object' || options === null) {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'options', 'an object with policies or tiers', options)
  }
  const policies = parsePolicies(options.policies ?? {})
  const tiers = parseTiers(options.tiers ?? {})
  if (policies.size + tiers.size === 0) {
    throw new HeadgateError(
      'ERR_HEADGATE_INVALID_OPTION',
      'policies: expected at least one policy or tier; got none',
    )
  }
  const store = options.store ?? memoryStore(options.clock === undefined ? {} : { clock: options.clock })
  if (typeof store?.decide !== 'function') {
    throw unexpected(
      'ERR_HEADGATE_INVALID_OPTION',
      'store',
      'what memoryStore() or redisStore() returns',
      store,
    )
  }
  const context = { clock: store.clock ?? options.clock ?? systemClock, source: store.source }
  const nameSubject = createSubjectNamer(options.subject)
  const refunded = new WeakMap<Decision, number>()
  let closed = false

  type AnyAsk = Ask<string, string>

  function policyOf(ask: AnyAsk): Policy {
    if (typeof ask !== 'object' || ask === null || (ask.policy === undefined) === (ask.tier === undefined)) {
      throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'ask', 'one of { policy } and { tier }', namesOf(ask))
    }
    const policy = ask.policy === undefined ? tiers.get(ask.tier) : policies.get(ask.policy)
    if (policy !== undefined) return policy
    if (ask.policy !== undefined) throw unknownName('policy', ask.policy, policies)
    throw unknownName('tier', ask.tier, tiers)
  }

  function questionOf(policy: Policy, subjectInput: SubjectInput, ask: AnyAsk, cost: number): Question {
    const subject = nameSubject(subjectInput)
    const scope = ask.scope ?? 'global'
    if (typeof scope !== 'string' || scope === '') {
      throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'scope', 'a non-empty string', scope)
    }
    const { limits } = policy
    const [first] = limits
    if (first !== undefined && limits.length === 1 && ask.onStoreFailure === undefined) {
      return new SingleQuestion(subject, scope, first.name, first.limit, cost)
    }
    const checks = limits.map(({ name, limit }) => ({ subject, scope, name, limit, cost }))
    const question = { alternatives: [checks], shadow: NO_CHECKS }
    if (ask.onStoreFailure === undefined) return question
    return { ...question, onStoreFailure: parseFailureMode(ask.onStoreFailure) }
  }

  /** Not an async function: the embedded store answers at once, and one promise is all such a decision costs. */
  function ask(how: 'decide' | 'peek', subject: SubjectInput, ask: AnyAsk): Promise<Decision> {
    try {
      if (closed) throw closedError()
      const policy = policyOf(ask)
      const cost = ask.cost === undefined ? 1 : parseCost(ask.cost)
      const question = questionOf(policy, subject, ask, cost)
      const answer = how === 'decide' ? store.decide(question) : store.peek(question)
      if (answer instanceof Promise) return decideLater(answer, question, policy, cost)
      return Promise.resolve(new Decision(question, answer, policy, cost, context))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  /** Apart, so that a decision made at once does not pay for the closure of one that is not. */
  async function decideLater(answer: Promise<Answer>, question: Question, policy: Policy, cost: number) {
    return new Decision(question, await answer, policy, cost, context)
  }

  return {
    policyNames: [...policies.keys()] as (keyof Policies & string)[],
    tierNames: [...tiers.keys()] as (keyof Tiers & string)[],
    check: (subject, options) => ask('decide', subject, options as AnyAsk),
    peek: (subject, options) => ask('peek', subject, options as AnyAsk),

    async refund(decision, units = decision.cost) {
      if (closed) throw closedError()
      if (!(decision instanceof Decision)) {
        throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'decision', 'what check returned', decision)
      }
      // What was decided without the store is not in the store: giving it back there would be a gift.
      if (decision.source !== store.source) return 0
      const charges = Decision.chargesOf(decision)
      if (charges.length === 0) {
        throw new HeadgateError(
          'ERR_HEADGATE_NOT_CHARGED',
          'decision: expected one that charged; this one did not',
        )
      }
      if (!Number.isInteger(units) || units < 1 || units > decision.cost) {
        throw unexpected(
          'ERR_HEADGATE_INVALID_COST',
          'units',
          `a whole number from 1 to the decision's cost ${decision.cost}`,
          units,
        )
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
      if (closed) throw closedError()
      const policy = policyOf(options as AnyAsk)
      await store.reset(questionOf(policy, subject, options as AnyAsk, 0).alternatives.flat())
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
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'onStoreFailure', "'local', 'open' or 'closed'", mode)
}

/** What an ask names, for a message. */
function namesOf(ask: unknown): unknown {
  if (typeof ask !== 'object' || ask === null) return ask
  return 'policy' in ask && 'tier' in ask ? 'both' : 'neither'
}

function closedError(): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_CLOSED', 'limiter: expected an open limiter; it was closed')
}

function parseCost(cost: unknown): number {
  if (typeof cost === 'number' && Number.isInteger(cost) && cost >= 0 && cost <= MAX_COST) return cost
  throw unexpected('ERR_HEADGATE_INVALID_COST', 'cost', `a whole number from 0 to ${MAX_COST}`, cost)
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
