import type { Decision } from '../decision/decision.js'
import type { FailureMode } from '../engine/question.js'
import { unexpected } from '../errors/headgate-error.js'
import { refuseUnknown } from '../errors/refuse-unknown.js'
import { SingleLimitPolicies } from '../fast-path/single-limit-policies.js'
import { emitterOf } from '../observe/emit.js'
import type { DecisionEvent } from '../observe/event.js'
import { type Logger, parseLogger } from '../observe/logger.js'
import type { Statistics } from '../observe/statistics/statistics.js'
import { Ipv6Budgets } from '../policy/ipv6-budgets.js'
import type { PolicyOptions } from '../policy/policies.js'
import type { TierOptions } from '../policy/tiers.js'
import type { Store } from '../store/store.js'
import { createSubjectNamer, type SubjectInput, type SubjectOptions } from '../subject/subject.js'
import type { Clock, Timers } from '../time/clock.js'
import { type Ask, parseCost } from './ask.js'
import { type AsksByName, asksByName } from './asks-by-name.js'
import { createFrontDoor } from './front-door.js'
import { NamedPolicies } from './named-policies.js'
import type { RefundOptions, Reservation } from './refunds.js'
import type { Patience } from './turns.js'

export interface LimiterOptions<
  Policies extends Record<string, PolicyOptions>,
  Tiers extends Record<string, TierOptions>,
> {
  /** Where limits are kept. Default: in this process, the embedded store. */
  readonly store?: Store
  readonly policies?: Policies
  /** Classes of caller; `defaultTiers` is a set to start from. */
  readonly tiers?: Tiers
  /** How subjects are named, and which of them are secrets. */
  readonly subject?: SubjectOptions
  /** Where lines are written. Default: the console. */
  readonly logger?: Logger
  /** Called for every decision, in the async context the limiter was made in. Costs nothing if left out. */
  readonly onEvent?: (event: DecisionEvent) => void
  /** Where decisions are counted. Default: where those of the store are, or nowhere. */
  readonly statistics?: Statistics
  readonly clock?: Clock
  /** For tests in which no time passes. */
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
   * Decides like `check`, but synchronously where possible: in memory, from a lease, for a remembered denial, and
   * while the failure mode decides. Otherwise returns a promise. Throws an error that `check` would reject with if
   * it is known at once.
   */
  checkNow(subject: SubjectInput, ask: Ask<PolicyName, TierName>): Decision | Promise<Decision>
  /** Answers what `check` would, and changes nothing; `remaining` is what is left before the request. */
  peek(subject: SubjectInput, ask: Ask<PolicyName, TierName>): Promise<Decision>
  /**
   * Gives back what a decision charged, or `units` of it, as far as it still counts. Returns the units: 0 for a
   * charge the store did not make, while the store cannot be asked, and beyond the bound `atMost`.
   */
  refund(decision: Decision, units?: number | RefundOptions): Promise<number>
  /**
   * Checks like `check`, but waits for its turn instead of being denied: fairly, behind earlier callers in this
   * process, of whom a released place wakes the first at once. Resolves with a denial when `timeoutMs` is up or no wait is long enough; rejects with the reason of
   * `signal`.
   */
  acquire(subject: SubjectInput, ask: Ask<PolicyName, TierName> & Patience): Promise<Decision>
  /** Charges an estimate (`cost`) for a request whose cost is only known afterwards. */
  reserve(subject: SubjectInput, ask: Ask<PolicyName, TierName>): Promise<Reservation>
  /** Settles the actual cost of an admitted request, once; see `Reservation`. Changes nothing after `close()`. */
  settle(decision: Decision, actual: number): Promise<void>
  /** Forgets what the subject has used. */
  reset(subject: SubjectInput, ask: Omit<Ask<PolicyName, TierName>, 'cost'>): Promise<void>
  /**
   * Decides a request about which nothing could be asked, because something on the way threw, such as a function
   * that identifies the caller or `check` itself. Counts it. The failure mode decides: `closed` refuses, the others
   * let it pass.
   */
  decideFault(about?: FaultFacts): Decision
  /** Whether `decideFault` would refuse; decides and counts nothing. */
  refusesFault(about?: FaultFacts): boolean
  counts(): LimiterCounts
  /**
   * Returns unfinished work, such as a call that missed its deadline, for the `waitUntil` of a runtime that would
   * cut it off after the response; the adapters call it. Null if there is none, and on runtimes that cut nothing
   * off.
   */
  underWay(): Promise<unknown> | null
  /**
   * Finishes what is in flight, gives back places and leases, and closes the store. Requests that go on may still
   * `release()`, which does nothing, and `settle()`, which leaves their estimate as it is and warns once; everything
   * else rejects from then on.
   */
  close(): Promise<void>
}

/** Facts about a request for which something failed. */
export interface FaultFacts {
  /** Default: the store's. */
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

/** Creates a limiter. Unknown policy and tier names fail to compile, and throw where types are not checked. */
export function createLimiter<
  const Policies extends Record<string, PolicyOptions> = Record<never, PolicyOptions>,
  const Tiers extends Record<string, TierOptions> = Record<never, TierOptions>,
>(options: LimiterOptions<Policies, Tiers>): Limiter<keyof Policies & string, keyof Tiers & string> {
  if (typeof options !== 'object' || options === null) {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'options', 'an object with policies or tiers', options)
  }
  refuseUnknown(options, OPTIONS)
  const logger = parseLogger(options.logger)
  const nameSubject = createSubjectNamer({
    onWarning: ({ code, message }) => logger.warn({ code }, `${code}: ${message}`),
    ...options.subject,
  })
  const named = new NamedPolicies(options, nameSubject)
  const emit = emitterOf<DecisionEvent>(options.onEvent)
  const { store, clock, timers, statistics } = options
  const door = createFrontDoor({ store, clock, timers, statistics, emit, logger })
  const { stage } = door
  const budgets = new Ipv6Budgets(options.subject?.ipv6Networks)
  const singleLimits = new SingleLimitPolicies(named.policies, door, nameSubject.isOwnName)
  let faults = 0

  const asks = asksByName(
    door,
    {
      single: (subject, ask) => (typeof subject === 'string' ? singleLimits.policyFor(ask) : undefined),
      subjectOf: subject => subject as string,
      resolve(subject, ask) {
        const policy = named.find(ask)
        const cost = ask.cost === undefined ? 1 : parseCost(ask.cost)
        return { question: budgets.widen(named.question(policy, subject, ask, cost)), policy, cost }
      },
    },
    door.settle,
  )

  function refusesFault(about?: FaultFacts): boolean {
    return (about?.onStoreFailure ?? door.store.onStoreFailure) === 'closed'
  }

  return {
    policyNames: [...named.policies.keys()] as (keyof Policies & string)[],
    tierNames: [...named.tiers.keys()] as (keyof Tiers & string)[],
    ...(asks as Pick<Limiter<keyof Policies & string, keyof Tiers & string>, keyof AsksByName>),
    refund: door.refund,

    async reset(subject, ask) {
      door.refuseClosed()
      const charged = ask as Ask<string, string>
      await stage.reset(named.question(named.find(charged), subject, charged, 0).alternatives.flat())
    },

    decideFault(about) {
      faults++
      return door.decideFault(refusesFault(about) ? 'closed' : 'open')
    },
    refusesFault,
    counts: () => ({ faults }),
    underWay: () => door.store.underWay?.() ?? null,

    async close() {
      await door.close()
    },
  }
}
