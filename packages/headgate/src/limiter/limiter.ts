import type { Decision } from '../decision/decision.js'
import type { Check, FailureMode, Question } from '../engine/question.js'
import { HeadgateError, unexpected } from '../errors/headgate-error.js'
import { refuseUnknown } from '../errors/refuse-unknown.js'
import { SingleLimitPolicy } from '../fast-path/single-limit-policy.js'
import { SingleQuestion } from '../fast-path/single-question.js'
import { emitterOf } from '../observe/emit.js'
import type { DecisionEvent } from '../observe/event.js'
import { type Logger, parseLogger } from '../observe/logger.js'
import type { Statistics } from '../observe/statistics/statistics.js'
import { parseFailureMode } from '../policy/config.js'
import { Ipv6Budgets } from '../policy/ipv6-budgets.js'
import { type Policy, type PolicyOptions, parsePolicies, parseTiers } from '../policy/policies.js'
import { makeQuestion, withoutRepeats } from '../policy/question-of.js'
import type { TierOptions } from '../policy/tiers.js'
import { unitsTaken } from '../policy/units-taken.js'
import type { Store } from '../store/store.js'
import { createSubjectNamer, type SubjectInput, type SubjectOptions } from '../subject/subject.js'
import type { Clock, Timers } from '../time/clock.js'
import { type Ask, namesOf, parseAlso, parseCost, parseScope, unknownName } from './ask.js'
import { createFrontDoor } from './front-door.js'
import { type Reservation, reservationOf } from './reservation.js'
import { budgetOf, type Patience } from './turns.js'

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
  /** Where lines are written. Default: the console. */
  readonly logger?: Logger
  /** Told of every decision, in the async context the limiter was made in. Left out: costs nothing. */
  readonly onEvent?: (event: DecisionEvent) => void
  /** Where decisions are counted. Left out: where those of the store are, or nowhere. */
  readonly statistics?: Statistics
  readonly clock?: Clock
  /** For tests that let no time pass. */
  readonly timers?: Timers
}

export interface Limiter<PolicyName extends string, TierName extends string> {
  /** The policies that can be asked for. */
  readonly policyNames: readonly PolicyName[]
  /** The tiers that can be asked for. */
  readonly tierNames: readonly TierName[]
  /** Charges the request if every limit has room for it. A denial is a decision, never an error. */
  check(subject: SubjectInput, ask: Ask<PolicyName, TierName>): Promise<Decision>
  /**
   * `check` without the wait where there is nothing to wait for: in memory, from a lease, for a denial this process
   * remembers, and while the failure mode decides, the decision itself is returned. Otherwise a promise of it.
   * An error that `check` would reject with is thrown if it is known at once.
   */
  checkNow(subject: SubjectInput, ask: Ask<PolicyName, TierName>): Decision | Promise<Decision>
  /** Says what `check` would and changes nothing; `remaining` is what is left before the request. */
  peek(subject: SubjectInput, ask: Ask<PolicyName, TierName>): Promise<Decision>
  /**
   * Gives back what a decision charged, or `units` of it, as far as it still counts. Returns the units: 0 for one the
   * store did not make, and while the store cannot be asked.
   */
  refund(decision: Decision, units?: number): Promise<number>
  /**
   * `check` that waits for its turn instead of being denied: fairly, behind those of this process who asked before.
   * Resolves with a denial when `timeoutMs` is up or no waiting helps; rejects with the reason of `signal`.
   */
  acquire(subject: SubjectInput, ask: Ask<PolicyName, TierName> & Patience): Promise<Decision>
  /** Charges an estimate (`cost`) for a request whose cost is known only afterwards. */
  reserve(subject: SubjectInput, ask: Ask<PolicyName, TierName>): Promise<Reservation>
  /** Says what the request of a decision really cost, once; see `Reservation`. */
  settle(decision: Decision, actual: number): Promise<void>
  /** Forgets what the subject has used. */
  reset(subject: SubjectInput, ask: Omit<Ask<PolicyName, TierName>, 'cost'>): Promise<void>
  /**
   * Decides a request about which nothing could be asked, because something on the way threw: a function that says who
   * is asking, or `check` itself. Counts it. The failure mode decides: `closed` refuses, the others let it pass.
   */
  decideFault(about?: FaultFacts): Decision
  counts(): LimiterCounts
  /**
   * Work that was begun and is not over, such as a call that missed its deadline: for the `waitUntil` of a runtime that
   * would cut it off after the response, which the adapters call. Null when there is nothing, and wherever nothing is
   * cut off.
   */
  underWay(): Promise<unknown> | null
  close(): Promise<void>
}

/** Facts about a request that something failed for. */
export interface FaultFacts {
  /** Left out: the store's. */
  readonly onStoreFailure?: FailureMode
}

/** Counts since the limiter was made. */
export interface LimiterCounts {
  /** Requests about which nothing could be asked: see `decideFault`. */
  readonly faults: number
}

const OPTIONS = [
  'store',
  'policies',
  'tiers',
  'subject',
  'logger',
  'onEvent',
  'statistics',
  'clock',
  'timers',
]
const NO_CHECKS: readonly Check[] = []

/** Builds a limiter. Policy and tier names that do not exist do not compile, and throw where types are not checked. */
export function createLimiter<
  const Policies extends Record<string, PolicyOptions> = Record<never, PolicyOptions>,
  const Tiers extends Record<string, TierOptions> = Record<never, TierOptions>,
>(options: LimiterOptions<Policies, Tiers>): Limiter<keyof Policies & string, keyof Tiers & string> {
  if (typeof options !== 'object' || options === null) {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'options', 'an object with policies or tiers', options)
  }
  refuseUnknown(options, OPTIONS)
  const policies = parsePolicies(options.policies ?? {})
  const tiers = parseTiers(options.tiers ?? {})
  if (policies.size + tiers.size === 0) {
    throw new HeadgateError(
      'ERR_HEADGATE_INVALID_OPTION',
      'policies: expected at least one policy or tier; got none',
    )
  }
  const logger = parseLogger(options.logger)
  const emit = emitterOf<DecisionEvent>(options.onEvent)
  const { store, clock, timers, statistics } = options
  const door = createFrontDoor({ store, clock, timers, statistics, emit })
  const { stage, context, recorder } = door
  const nameSubject = createSubjectNamer({
    onWarning: ({ code, message }) => logger.warn({ code }, `${code}: ${message}`),
    ...options.subject,
  })
  const budgets = new Ipv6Budgets(options.subject?.ipv6Networks)
  let faults = 0

  type AnyAsk = Ask<string, string>

  function policyOf(ask: {
    readonly policy?: string | undefined
    readonly tier?: string | undefined
  }): Policy {
    if (typeof ask !== 'object' || ask === null || (ask.policy === undefined) === (ask.tier === undefined)) {
      throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'ask', 'one of { policy } and { tier }', namesOf(ask))
    }
    const policy = ask.policy === undefined ? tiers.get(ask.tier as string) : policies.get(ask.policy)
    if (policy !== undefined) return policy
    if (ask.policy !== undefined) throw unknownName('policy', ask.policy, policies)
    throw unknownName('tier', ask.tier, tiers)
  }

  function questionOf(policy: Policy, subjectInput: SubjectInput, ask: AnyAsk, cost: number): Question {
    const subject = nameSubject(subjectInput)
    const scope = parseScope(ask.scope)
    const { limits } = policy
    const [first] = limits
    const also = parseAlso(ask)
    if (first !== undefined && limits.length === 1 && also.length === 0 && ask.onStoreFailure === undefined) {
      return new SingleQuestion(subject, scope, first.name, first.limit, unitsTaken(first.limit, cost))
    }
    const own = limits.map(({ name, limit }) => ({
      subject,
      scope,
      name,
      limit,
      cost: unitsTaken(limit, cost),
    }))
    const checks = also.length === 0 ? own : withoutRepeats([...own, ...othersOf(also, scope, cost)])
    const onStoreFailure = ask.onStoreFailure === undefined ? null : parseFailureMode(ask.onStoreFailure)
    return makeQuestion([checks], NO_CHECKS, onStoreFailure)
  }

  /** The checks of the further subjects. */
  function othersOf(also: NonNullable<AnyAsk['also']>, scope: string, cost: number): Check[] {
    return also.flatMap(one => {
      const subject = nameSubject(one.subject)
      return policyOf(one).limits.map(({ name, limit }) => ({
        subject,
        scope,
        name,
        limit,
        cost: unitsTaken(limit, cost),
      }))
    })
  }

  const singleLimitPolicies = new Map<string, SingleLimitPolicy>()
  for (const [name, policy] of policies) {
    const [only, more] = policy.limits
    if (only === undefined || more !== undefined) continue
    const oneUnit = stage.oneUnit?.(only.name, only.limit, nameSubject.isOwnName)
    const counted = recorder?.plain(policy, context.source) ?? null
    if (oneUnit !== undefined)
      singleLimitPolicies.set(name, new SingleLimitPolicy(policy, oneUnit, context, counted))
  }
  let lastName: string | undefined
  let lastPolicy: SingleLimitPolicy | undefined

  /** The policy of an ask that is nothing but its name. */
  function singleLimitPolicy(ask: AnyAsk): SingleLimitPolicy | undefined {
    if (typeof ask !== 'object' || ask === null) return
    if (ask.tier !== undefined || ask.scope !== undefined || ask.cost !== undefined) return
    if (ask.onStoreFailure !== undefined || ask.also !== undefined) return
    const name = ask.policy
    if (name !== lastName) {
      lastName = name
      lastPolicy = singleLimitPolicies.get(name)
    }
    return lastPolicy
  }

  const decisions = door.through<SubjectInput, AnyAsk>({
    single: (subject, ask) => (typeof subject === 'string' ? singleLimitPolicy(ask) : undefined),
    subjectOf: subject => subject as string,
    resolve(subject, ask) {
      const policy = policyOf(ask)
      const cost = ask.cost === undefined ? 1 : parseCost(ask.cost)
      return { question: budgets.widen(questionOf(policy, subject, ask, cost)), policy, cost }
    },
  }) as Pick<Limiter<keyof Policies & string, keyof Tiers & string>, 'check' | 'checkNow' | 'peek'>

  return {
    policyNames: [...policies.keys()] as (keyof Policies & string)[],
    tierNames: [...tiers.keys()] as (keyof Tiers & string)[],
    ...decisions,
    refund: door.refund,
    acquire: (subject, { timeoutMs, signal, ...ask }) =>
      door.turns.wait(budgetOf(subject, ask), () => decisions.check(subject, ask as typeof ask & AnyAsk), {
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(signal && { signal }),
      }),
    settle: door.settle,
    reserve: async (subject, ask) => reservationOf(await decisions.check(subject, ask), door.settle),

    async reset(subject, options) {
      door.refuseClosed()
      const policy = policyOf(options as AnyAsk)
      await stage.reset(questionOf(policy, subject, options as AnyAsk, 0).alternatives.flat())
    },

    decideFault(about) {
      faults++
      const mode = about?.onStoreFailure ?? door.store.onStoreFailure
      return door.decideFault(mode === 'closed' ? 'closed' : 'open')
    },
    counts: () => ({ faults }),
    underWay: () => door.store.underWay?.() ?? null,

    async close() {
      await door.close()
    },
  }
}
