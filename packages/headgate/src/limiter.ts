import {
  type Ask,
  closedError,
  namesOf,
  parseCost,
  parseFailureMode,
  parseScope,
  unknownName,
} from './ask.js'
import { type Clock, systemClock } from './clock.js'
import type { Decision } from './decision/decision.js'
import { undecided } from './decision/undecided.js'
import type { Check, Question } from './engine/question.js'
import { SingleQuestion } from './engine/single.js'
import { HeadgateError, unexpected } from './errors.js'
import { LateDecision } from './late-decision.js'
import { PlainPolicy } from './plain-policy.js'
import { type Policy, type PolicyOptions, parsePolicies, parseTiers } from './policy/policies.js'
import type { TierOptions } from './policy/tiers.js'
import { createRefunds } from './refunds.js'
import type { FailureMode } from './store/guard/failure.js'
import { memoryStore } from './store/memory/memory-store.js'
import { shortWaysOf } from './store/short-ways.js'
import type { Store } from './store/store.js'
import { type How, putOf } from './store/waiter.js'
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
  /**
   * What to do with a request about which nothing could be asked, because something on the way threw: a function that
   * says who is asking, or `check` itself. Counts it. The failure mode decides: `closed` refuses, the others let it pass.
   */
  decideFault(about?: FaultAbout): Decision
  counts(): LimiterCounts
  close(): Promise<void>
}

/** What is known of a request that something failed for. */
export interface FaultAbout {
  /** Left out: the store's. */
  readonly onStoreFailure?: FailureMode
}

/** What has been counted since the limiter was made. */
export interface LimiterCounts {
  /** Requests about which nothing could be asked: see `decideFault`. */
  readonly faults: number
}

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
  const { wayOf } = shortWaysOf(store)
  const putToStore = putOf(store)
  const context = { clock: store.clock ?? options.clock ?? systemClock, source: store.source }
  const nameSubject = createSubjectNamer(options.subject)
  const refund = createRefunds(store)
  let closed = false
  let faults = 0

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
    const scope = parseScope(ask.scope)
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

  const plainPolicies = new Map<string, PlainPolicy>()
  for (const [name, policy] of policies) {
    const [only, more] = policy.limits
    const oneUnit = only === undefined || more !== undefined ? undefined : wayOf?.(only.name, only.limit)
    if (oneUnit !== undefined)
      plainPolicies.set(name, new PlainPolicy(policy, oneUnit, context, nameSubject.isOwnName))
  }
  let lastName: string | undefined
  let lastPlain: PlainPolicy | undefined

  /** The policy of an ask that is nothing but its name. */
  function plainPolicy(ask: AnyAsk): PlainPolicy | undefined {
    if (typeof ask !== 'object' || ask === null) return
    if (ask.tier !== undefined || ask.scope !== undefined || ask.cost !== undefined) return
    if (ask.onStoreFailure !== undefined) return
    const name = ask.policy
    if (name !== lastName) {
      lastName = name
      lastPlain = plainPolicies.get(name)
    }
    return lastPlain
  }

  function check(subject: SubjectInput, ask: AnyAsk): Promise<Decision> {
    try {
      if (typeof subject === 'string' && !closed) {
        const decision = plainPolicy(ask)?.check(subject)
        if (decision) return decision
      }
    } catch (error) {
      return Promise.reject(error)
    }
    return put('decide', subject, ask)
  }

  /** Not an async function: one promise is all that a decision costs. */
  function put(how: How, subject: SubjectInput, ask: AnyAsk): Promise<Decision> {
    try {
      if (closed) throw closedError()
      const policy = policyOf(ask)
      const cost = ask.cost === undefined ? 1 : parseCost(ask.cost)
      const question = questionOf(policy, subject, ask, cost)
      const decision = new LateDecision(question, policy, cost, context)
      const answer = putToStore(how, question, decision)
      return answer === null ? decision.promise : decision.now(answer)
    } catch (error) {
      return Promise.reject(error)
    }
  }

  return {
    policyNames: [...policies.keys()] as (keyof Policies & string)[],
    tierNames: [...tiers.keys()] as (keyof Tiers & string)[],
    check: check as Limiter<keyof Policies & string, keyof Tiers & string>['check'],
    peek: (subject, ask) => put('peek', subject, ask as AnyAsk),

    async refund(decision, units) {
      if (closed) throw closedError()
      return refund(decision, units)
    },

    async reset(subject, options) {
      if (closed) throw closedError()
      const policy = policyOf(options as AnyAsk)
      await store.reset(questionOf(policy, subject, options as AnyAsk, 0).alternatives.flat())
    },

    decideFault(about) {
      faults++
      const mode = about?.onStoreFailure ?? store.onStoreFailure
      return undecided(mode === 'closed' ? 'closed' : 'open', context)
    },
    counts: () => ({ faults }),

    async close() {
      if (closed) return
      closed = true
      await store.close()
    },
  }
}
