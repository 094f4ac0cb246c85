/**
 * A limiter: who asks and what for becomes one pending check, the store decides it, and the caller gets the decision.
 * Policies by name (`check`) and rules by request (`request`) are two resolvers; everything else is the same.
 */
import type { Duration } from '../algorithms/durations.js'
import type { Check, FailureMode } from '../check/check.js'
import { type CheckOptions, parseCost } from '../check/check-options.js'
import { PendingCheck } from '../check/pending-check.js'
import { type CheckContext, type NamedLimit, NO_LABELS, Plan } from '../check/plan.js'
import { Plans } from '../check/plans.js'
import { Decision, policyOf } from '../decision/decision.js'
import { HeadgateError, invalidOption } from '../errors/headgate-error.js'
import { rejectUnknown } from '../errors/reject-unknown.js'
import { type Emit, emitterOf } from '../observe/emit.js'
import { type DecisionEvent, decisionEvent, type LimiterEvent } from '../observe/event.js'
import { type Logger, parseLogger } from '../observe/logger.js'
import { recorderOf, watchLimiter } from '../observe/statistics/attached.js'
import type { Statistics } from '../observe/statistics/statistics.js'
import { throttleLog, WARN_EVERY_MS, warnThrottled } from '../observe/throttled-log.js'
import type { ActivePolicies } from '../policy/active-policies.js'
import { type Config, RULES } from '../policy/config.js'
import type { Explanation } from '../policy/explanation.js'
import { type PolicyOptions, writtenPolicies } from '../policy/policies.js'
import type { RequestFacts } from '../policy/request-facts.js'
import type { Rules } from '../policy/rules.js'
import type { Tier } from '../policy/tiers.js'
import type { Estimates } from '../policy/token-meters.js'
import { decideBy } from '../store/ask-store.js'
import { memoryControl } from '../store/memory/memory-control.js'
import { MemoryStore } from '../store/memory/memory-store.js'
import { STORE, type Store } from '../store/store.js'
import type { HttpRequest } from '../subject/http-request.js'
import type { Identify } from '../subject/identify.js'
import {
  type StoredSubject,
  type SubjectInput,
  type SubjectNamer,
  type SubjectOptions,
  storedName,
} from '../subject/subject.js'
import { type Clock, systemClock, systemTimers, type Timers } from '../time/clock.js'
import {
  type CreditAnswer,
  type CreditOptions,
  creditAll,
  parseCredit,
  type QuotaUsage,
  usageOf,
} from './accounts.js'
import { Comparison } from './comparison.js'
import { Counter, type LimiterCounts } from './counts.js'
import {
  type AcquireOptions,
  createFairQueue,
  type FairQueue,
  type Hold,
  parseSignal,
  parseTimeoutMs,
} from './fair-queue.js'
import { type CurrentFile, InForce, rulesOf } from './in-force.js'
import { type Inspection, type InspectOptions, inspect } from './inspection.js'
import { type ControlApi, createOperators, type Operators, type OverridesApi } from './operators.js'
import { OverrideCache } from './override-cache.js'
import { Permits } from './permits.js'
import { type Actual, type RefundOptions, Refunds, type Reservation, rejectUnknownPolicy } from './refunds.js'
import { strikesIn } from './strikes.js'

interface CommonOptions {
  /** Where limits are kept. Default: in this process, the embedded store. */
  readonly store?: Store
  /** How subjects are named, and which of them are secrets. */
  readonly subject?: SubjectOptions
  /** Where lines are written. Default: the console. */
  readonly logger?: Logger
  /**
   * Called for decisions, reloads, control and overrides, in the async context the limiter was made in. Costs nothing
   * if left out.
   */
  readonly onEvent?: (event: DecisionEvent | LimiterEvent) => void
  /** Called instead of the logger for what needs an operator's attention: ignored values, an undefined tier. */
  readonly onWarning?: (message: string) => void
  /** Where decisions are counted. Default: where those of the store are, or nowhere. */
  readonly statistics?: Statistics
  readonly clock?: Clock
  /** For tests in which no time passes. */
  readonly timers?: Timers
}

/** The options of a limiter whose policies are written in code. */
export interface LimiterOptions<
  Policies extends Record<string, PolicyOptions>,
  Tiers extends Record<string, Tier>,
> extends CommonOptions {
  readonly policies?: Policies
  /** Classes of caller, made by `tier()`; `defaultTiers` is a set to start from. */
  readonly tiers?: Tiers
  readonly config?: undefined
}

/** The options of a limiter that enforces a policy file. */
export interface ConfigLimiterOptions<PolicyName extends string = string, TierName extends string = string>
  extends CommonOptions {
  /** From `loadConfig`, `parseConfig` or `defineConfig`. */
  readonly config: Config<PolicyName, TierName>
  readonly policies?: undefined
  readonly tiers?: undefined
}

/** What operators see beside a ban. */
export interface BanNote {
  /** Who set it. Default `code`. */
  readonly by?: string
  readonly reason?: string
}

/** Where a limiter shows what is in force to the parts of the library that ask it for limits of their own. */
export const INSIDE: unique symbol = Symbol.for('headgate.inside')

/** What is in force in a limiter, and how it decides. */
export interface LimiterInside {
  readonly nameSubject: SubjectNamer
  readonly active: ActivePolicies
  readonly plans: Plans
  readonly store: Store
  decide(check: PendingCheck): Decision | Promise<Decision>
}

/** Facts about a request for which something failed. */
export interface FaultFacts {
  /** Default: the store's. */
  readonly onStoreFailure?: FailureMode
  /** The policy it would have been charged to: one in shadow denies nobody. */
  readonly policy?: string
}

/**
 * A limiter of policies that are asked for by name. Names that do not exist fail to compile, and throw where types are
 * not checked.
 */
export interface Limiter<PolicyName extends string = string, TierName extends string = string> {
  /** Whether it has a policy file, whose rules find the limits of a request. */
  readonly hasRules: boolean
  /** The policies that can be asked for. */
  readonly policyNames: readonly PolicyName[]
  /** The tiers that can be asked for. */
  readonly tierNames: readonly TierName[]
  /**
   * Charges the request if every limit has room for it. A denial is a decision, never an error.
   *
   * @example
   * const decision = await limiter.check('user:42', { policy: 'api' })
   * if (!decision.allowed) console.log(`try again in ${decision.retryAfterMs} ms`)
   */
  check(subject: SubjectInput, options: CheckOptions<PolicyName, TierName>): Promise<Decision>
  /**
   * Decides like `check`, but synchronously where possible: in memory, from a lease, for a cached denial, and
   * while the failure mode decides. Otherwise returns a promise. Throws an error that `check` would reject with if
   * it is known at once. `hold` lets a request wait for room instead of being denied; adapters pass it.
   */
  checkNow(
    subject: SubjectInput,
    options: CheckOptions<PolicyName, TierName>,
    hold?: Hold,
  ): Decision | Promise<Decision>
  /** Answers what `check` would, and changes nothing; `remaining` is what is left before the request. */
  peek(subject: SubjectInput, options: CheckOptions<PolicyName, TierName>): Promise<Decision>
  /**
   * Gives back what a decision charged, or so many units of it, as far as it still counts. Returns the units: 0 for a
   * charge the store did not make, while the store cannot be asked, and beyond `atMost`.
   */
  refund(decision: Decision, given?: number | RefundOptions): Promise<number>
  /**
   * Checks like `check`, but waits instead of being denied: fairly, behind earlier callers in this process. Resolves
   * with a denial when `timeoutMs` is up or no wait is long enough; rejects with the reason of `signal`.
   *
   * @example
   * const decision = await limiter.acquire('service:mail', { policy: 'outbound', timeoutMs: 5_000 })
   */
  acquire(
    subject: SubjectInput,
    options: CheckOptions<NoInfer<PolicyName>, NoInfer<TierName>> & AcquireOptions,
  ): Promise<Decision>
  /**
   * Charges an estimate (`cost`) for a request whose cost is only known afterwards.
   *
   * @example
   * const { decision, settle } = await limiter.reserve('user:42', { policy: 'tokens', cost: 2_000 })
   * if (decision.allowed) await settle(await runAndCountTokens())
   */
  reserve(subject: SubjectInput, options: CheckOptions<PolicyName, TierName>): Promise<Reservation>
  /** Settles the actual cost of an admitted request, once; see `Reservation`. Changes nothing after `close()`. */
  settle(decision: Decision, actual: Actual): Promise<void>
  /**
   * Forgets what the caller of an admitted request has used in the limits that the request was charged to, strikes included, as
   * after a login that succeeded. Others who paid with it (`also`) get back just what this request took.
   */
  forgive(decision: Decision): Promise<void>
  /** Forgets what the subject has used: in the given policy and scope, or in everything that is kept about it alone. */
  reset(
    subject: SubjectInput | StoredSubject,
    options?: Omit<CheckOptions<PolicyName, TierName>, 'cost'>,
  ): Promise<void>
  /**
   * Denies everything the subject asks for, in every process within a second, for a time of up to 31 days. The denials say until when.
   *
   * @example
   * await limiter.ban('user:42', '1h', { reason: 'scraping' })
   */
  ban(subject: SubjectInput | StoredSubject, duration: Duration, about?: BanNote): Promise<void>
  /** Ends every ban of the subject: one that was set, and those that policies have made of its denials. */
  unban(subject: SubjectInput | StoredSubject): Promise<void>
  /**
   * Adds units to the quotas of a policy or tier, which are used when those are: they last unless told otherwise. Returns what
   * was used; the same `id` credits once. Rejects while the store cannot be asked.
   *
   * @example
   * await limiter.credit('user:42', 10_000, { policy: 'plan', id: 'invoice-2027-01' })
   */
  credit(
    subject: SubjectInput | StoredSubject,
    units: number,
    options: Omit<CheckOptions<PolicyName, TierName>, 'cost' | 'onStoreFailure'> & CreditOptions,
  ): Promise<CreditAnswer>
  /** Returns what a subject has used of its quotas, in this period and the one before; rejects while the store cannot be asked. */
  usage(
    subject: SubjectInput | StoredSubject,
    options?: Omit<CheckOptions<PolicyName, TierName>, 'cost' | 'onStoreFailure'>,
  ): Promise<readonly QuotaUsage[]>
  /** Returns all limits of a subject and their state, read from the store; rejects while that cannot be asked. */
  inspect(subject: SubjectInput | StoredSubject, options?: InspectOptions<TierName>): Promise<Inspection>
  /** Returns the name a subject is stored under: a digest if its id is a secret. */
  nameOf(subject: SubjectInput): string
  /** The switches of the fleet. */
  readonly control: ControlApi
  /** Temporary replacements of numbers. */
  readonly overrides: OverridesApi
  /** Settles when control and overrides were read once, or could not be. */
  ready(): Promise<void>
  /**
   * Decides a request about which nothing could be asked, because something on the way threw, such as `check` itself.
   * Counts it. The failure mode decides: `closed` denies, the others let it pass.
   */
  fallback(about?: FaultFacts & Partial<Pick<RequestFacts, 'method' | 'path'>>): Decision
  /** Whether `fallback` would deny; decides and counts nothing. */
  rejectsFault(about?: FaultFacts & Partial<Pick<RequestFacts, 'method' | 'path'>>): boolean
  counts(): LimiterCounts
  /**
   * Denies whoever waits for room, calls of `acquire` included, and lets nobody wait from then on: for a server that
   * stops. `close()` does it, too.
   */
  stopWaiting(): void
  /**
   * Returns unfinished work, such as a call that missed its deadline, for the `waitUntil` of a runtime that would
   * cut it off after the response; the adapters call it. Null if there is none, and on runtimes that cut nothing
   * off.
   */
  pending(): Promise<unknown> | null
  /**
   * Throws for a limiter that was closed.
   *
   * @internal
   */
  [INSIDE](): LimiterInside
  /**
   * Denies those who wait, finishes what is in flight, gives back permits and leases, and closes the store. Requests that go on may still
   * `release()`, which does nothing, and `settle()`, which leaves their estimate as it is and warns once; everything
   * else rejects from then on.
   */
  close(): Promise<void>
}

/** A limiter that also finds the limits of a request by the rules of a policy file. */
export interface RuleLimiter<PolicyName extends string = string, TierName extends string = string>
  extends Limiter<PolicyName, TierName> {
  /**
   * Decides a request by the rules. A denial is a decision, never an error.
   *
   * @example
   * const decision = await limiter.request({ subject: 'user:42', method: 'GET', path: '/users' })
   */
  request(facts: RequestFacts<TierName>): Promise<Decision>
  /**
   * Decides like `request`, synchronously where possible; see `checkNow`. A skipped path is one more such case. With
   * `hold`, a request may wait as its rule says, or else `hold`.
   */
  requestNow(facts: RequestFacts<TierName>, hold?: Hold): Decision | Promise<Decision>
  /**
   * Reserves the tokens that `tokens` of the request's rules limit, all meters or none, synchronously where possible:
   * where there is no estimate, what the rule says. `settle` takes what they came to by policy; `decision.tokens` has the
   * meter of each.
   */
  reserveTokens(facts: RequestFacts<TierName>, estimates?: Estimates): Decision | Promise<Decision>
  /** Answers what `request` would, and changes nothing; `remaining` is what is left before the request. */
  peekRequest(facts: RequestFacts<TierName>): Promise<Decision>
  /** Says which rules a request matches and why; asks and charges nothing. */
  explain(facts: RequestFacts<TierName>): Explanation
  /**
   * Identifies the caller by `identify`, `subjects` and `trustedProxies` of the file in force. Adapters use it
   * unless their options identify callers. Throws on access for a file that verifies tokens.
   */
  readonly identify: Identify
  /** Returns the client's address by `trustedProxies` of the file in force, as the subject that is charged. */
  addressOf(request: HttpRequest): SubjectInput
  /**
   * Puts another policy file in force as a whole, and keeps what was used. It is prepared a millisecond at a time, so
   * that requests do not wait, however large it is. Rejects a file that cannot be used, and then changes nothing. If
   * several reloads overlap, the one that began last wins.
   */
  reload(config: Config): Promise<void>
}

/**
 * Creates a limiter of policies written in code, or of a policy file.
 *
 * @example
 * const limiter = createLimiter({ policies: { api: slidingWindowLog({ limit: 100, window: '1m' }) } })
 * const decision = await limiter.check('user:42', { policy: 'api' })
 * @example
 * const limiter = createLimiter({ config: await loadConfig('headgate.yaml'), store: redisStore(client) })
 * const decision = await limiter.request({ subject: 'user:42', method: 'GET', path: '/users' })
 */
export function createLimiter<PolicyName extends string = string, TierName extends string = string>(
  options: ConfigLimiterOptions<PolicyName, TierName>,
): RuleLimiter<PolicyName, TierName>
export function createLimiter<
  const Policies extends Record<string, PolicyOptions> = Record<never, PolicyOptions>,
  const Tiers extends Record<string, Tier> = Record<never, Tier>,
>(options: LimiterOptions<Policies, Tiers>): Limiter<keyof Policies & string, keyof Tiers & string>
export function createLimiter(options: AnyLimiterOptions): RuleLimiter {
  if (typeof options !== 'object' || options === null) {
    throw invalidOption('options', 'an object with policies, tiers or a config', options)
  }
  if ('config' in options) {
    rejectNoConfig(options.config)
    if (options.policies !== undefined || options.tiers !== undefined)
      throw invalidOption('config', 'either a config or policies and tiers', 'both')
  }
  rejectUnknown(options, OPTIONS)
  return new PolicyLimiter(options)
}

type AnyLimiterOptions =
  | LimiterOptions<Record<string, PolicyOptions>, Record<string, Tier>>
  | ConfigLimiterOptions

type AnyCheckOptions = CheckOptions<string, string>

/** How many limits the metrics report: each is a series. */
const MAX_REPORTED_LIMITS = 200
const OPTIONS = [
  'store',
  'policies',
  'tiers',
  'config',
  'subject',
  'logger',
  'onEvent',
  'onWarning',
  'statistics',
  'clock',
  'timers',
]

class PolicyLimiter implements RuleLimiter {
  readonly hasRules: boolean
  readonly control: ControlApi
  readonly overrides: OverridesApi
  readonly #store: Store
  readonly #clock: Clock
  readonly #logger: Logger
  readonly #emit: Emit<DecisionEvent | LimiterEvent> | null
  readonly #context: CheckContext
  readonly #plans: Plans
  readonly #inForce: InForce
  readonly #callers: ReturnType<Rules['callers']> | null
  readonly #operators: Operators
  readonly #permits: Permits
  readonly #refunds: Refunds
  readonly #queue: FairQueue
  readonly #counter = new Counter()
  readonly #comparison: Comparison
  readonly #unwatch: () => void
  #isClosed = false
  #isWarnedOfLateSettling = false

  constructor(options: AnyLimiterOptions) {
    const { config, subject, timers = systemTimers } = options
    this.hasRules = config !== undefined
    this.#logger = parseLogger(options.logger)
    this.#emit = emitterOf<DecisionEvent | LimiterEvent>(options.onEvent)
    this.#store = storeOf(options)
    this.#clock = this.#store.clock ?? options.clock ?? systemClock
    const clock = this.#clock
    if (config !== undefined) rulesOf(config).rejectOtherFleet(config, this.#store.control?.fleet)
    const written = config ?? writtenPolicies(options.policies ?? {}, options.tiers ?? {})
    const statistics = options.statistics ?? this.#store.statistics
    const recorder = recorderOf(statistics)
    this.#refunds = new Refunds(this.#store, () => this.#isTooLate())
    const onBan = (check: Check, level: number) => this.#onBan(check, level)
    const isClosed = () => this.#isClosed
    const strike = strikesIn({ store: this.#store, onBan, isClosed })
    this.#queue = createFairQueue({
      // They wait in real time, whatever clock the store uses.
      clock: systemClock,
      timers,
      decide: check => this.#decide(check),
      takeBack: decision =>
        (this.#comparison.has(decision) ? this.#comparison : this.#refunds).takeBack(decision),
      isShared: this.#store.source !== 'memory',
    })
    const onFreed = this.#queue.freed
    this.#permits = new Permits(this.#store, { clock, timers, onFreed })
    this.#context = {
      clock,
      source: this.#store.source,
      recorder,
      isListening: recorder !== null || this.#emit !== null,
      onDecided: check => this.#onDecided(check),
      hold: (check, decision) =>
        (check.plan.isCompared ? this.#comparison : this.#permits).hold(check, decision),
      mayStrike: check => (check.plan.isCompared ? this.#comparison.strike : strike)(check),
    }
    this.#plans = new Plans(this.#context)
    const warn = warnThrottled(options.onWarning ?? (message => this.#logger.warn({}, message)), clock)
    const due = throttleLog(WARN_EVERY_MS, () => clock.nowUs() / 1000)
    const overrides = new OverrideCache(
      clock,
      () => this.#inForce.now.active.tierLimits,
      warn,
      stored => this.#emit?.({ type: 'override', stored }),
    )
    this.#inForce = new InForce({
      written,
      subject,
      store: this.#store,
      clock,
      overrides,
      plans: this.#plans,
      warn,
      warnSubject: ({ code, message }) => {
        if (options.onWarning !== undefined) warn(`${code}: ${message}`)
        else if (due(code) !== null) this.#logger.warn({ code }, `${code}: ${message}`)
      },
      onReload: ({ rules }) => {
        this.#counter.reloads++
        this.#store.policiesChanged?.()
        this.#emit?.({ type: 'reload', rules: rules.length })
      },
    })
    this.#callers = this.#inForce.now.file?.rules.callers(() => this.#file.config) ?? null
    this.#comparison = new Comparison({
      clock,
      store: this.#store,
      warn,
      onFreed,
      onBan,
      isClosed,
      onStoreDecided: check => {
        if (check.plan.hasShadow) this.#counter.countShadow(check)
      },
      onDivergence: () => void this.#counter.shadowDivergence++,
      isTooLate: () => this.#isTooLate(),
    })
    this.#operators = createOperators({
      store: this.#store.control ?? memoryControl(clock),
      nameSubject: meant => this.#nameMeant(meant),
      active: () => this.#inForce.now.active,
      concerned: (active, target) => this.#inForce.concernedBy(active, target),
      onControl: control => {
        const isNews = JSON.stringify(control) !== JSON.stringify(this.#inForce.now.active.control)
        if (isNews) this.#emit?.({ type: 'control', control })
        if (isNews) this.#inForce.setControl(control)
      },
      overrides,
      warn,
      clock,
    })
    this.control = this.#operators.control
    this.overrides = this.#operators.overrides
    this.#unwatch = watchLimiter(statistics, () => {
      const { active, file } = this.#inForce.now
      return {
        ...this.#counter.read(),
        control: active.control,
        overrides: overrides.size,
        configVersion: file?.rules.versionOf(file.config) ?? null,
        configLoadedAtMs: file?.loadedAtMs ?? null,
        limits: this.#inForce.configuredLimits(MAX_REPORTED_LIMITS),
      }
    })
  }

  get [STORE](): Store {
    return this.#store
  }

  get policyNames(): readonly string[] {
    return this.#inForce.now.names.policyNames
  }

  get tierNames(): readonly string[] {
    return this.#inForce.now.names.tierNames
  }

  check(subject: SubjectInput, options: AnyCheckOptions): Promise<Decision> {
    // Not an async function, so that a decision costs only one promise.
    try {
      return this.#decide(this.#inForce.now.names.resolve(subject, options, false)).promise()
    } catch (error) {
      return Promise.reject(error)
    }
  }

  checkNow(subject: SubjectInput, options: AnyCheckOptions, hold?: Hold): Decision | Promise<Decision> {
    const check = this.#inForce.now.names.resolve(subject, options, false)
    const wait = hold?.wait
    if (!wait || check.plan.asksNothing) return this.#decide(check).result()
    return this.#queue.hold(check, () => this.#inForce.now.names.resolve(subject, options, false), wait, hold)
  }

  async peek(subject: SubjectInput, options: AnyCheckOptions): Promise<Decision> {
    return this.#decide(this.#inForce.now.names.resolve(subject, options, true)).result()
  }

  request(facts: RequestFacts): Promise<Decision> {
    try {
      return this.#decide(this.#resolveRequest(facts)).promise()
    } catch (error) {
      return Promise.reject(error)
    }
  }

  requestNow(facts: RequestFacts, hold?: Hold): Decision | Promise<Decision> {
    const check = this.#resolveRequest(facts)
    const wait = hold === undefined ? null : (check.plan.labels.wait ?? hold.wait)
    if (!wait || check.plan.asksNothing) return this.#decide(check).result()
    return this.#queue.hold(check, () => this.#resolveRequest(facts), wait, hold as Hold)
  }

  reserveTokens(facts: RequestFacts, estimates: Estimates = {}): Decision | Promise<Decision> {
    for (const [meter, units] of Object.entries(estimates)) parseCost(units, `estimates.${meter}`)
    const check = this.#file.requests.resolveTokens(facts, estimates)
    check.request = facts
    return this.#decide(check).result()
  }

  async peekRequest(facts: RequestFacts): Promise<Decision> {
    return this.#decide(this.#file.requests.resolve(facts, true)).result()
  }

  acquire(subject: SubjectInput, options: AnyCheckOptions & AcquireOptions): Promise<Decision> {
    try {
      // Without options, nothing names a policy: `resolve` says so.
      const { timeoutMs, signal, ...asked } = options ?? {}
      const resolve = () => this.#inForce.now.names.resolve(subject, asked as AnyCheckOptions, false)
      const wait = { atMostMs: parseTimeoutMs(timeoutMs), queue: Number.POSITIVE_INFINITY }
      return this.#queue.acquire(resolve, wait, parseSignal(signal))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  async reserve(subject: SubjectInput, options: AnyCheckOptions): Promise<Reservation> {
    const decision = await this.check(subject, options)
    const settle = async (actual: Actual): Promise<void> => {
      if (decision.allowed) await this.settle(decision, actual)
    }
    return { decision, settle }
  }

  async refund(decision: Decision, given?: number | RefundOptions): Promise<number> {
    this.#rejectClosed()
    this.#rejectForeign(decision)
    return (this.#comparison.has(decision) ? this.#comparison : this.#refunds).refund(decision, given)
  }

  async settle(decision: Decision, actual: Actual): Promise<void> {
    this.#rejectForeign(decision)
    rejectUnknownPolicy(decision, actual, this.policyNames)
    await (this.#comparison.has(decision) ? this.#comparison : this.#refunds).settle(decision, actual)
  }

  async reset(subject: SubjectInput | StoredSubject, options?: Omit<AnyCheckOptions, 'cost'>): Promise<void> {
    this.#rejectClosed()
    const name = this.#nameMeant(subject)
    const states =
      options === undefined
        ? this.#inForce.ownStatesOf(name)
        : this.#inForce.statesOf(name, options as AnyCheckOptions)
    this.#comparison.reset(states)
    await this.#store.reset(states)
  }

  async forgive(decision: Decision): Promise<void> {
    this.#rejectClosed()
    this.#rejectForeign(decision)
    await (this.#comparison.has(decision) ? this.#comparison : this.#refunds).forgive(decision)
  }

  async ban(subject: SubjectInput | StoredSubject, duration: Duration, about: BanNote = {}): Promise<void> {
    this.#rejectClosed()
    if (about !== undefined) rejectUnknown(about, ['by', 'reason'])
    const target = { subject: { stored: this.#nameMeant(subject) }, ban: true } as const
    await this.overrides.set({ ...about, ...target, ttl: duration })
  }

  async unban(subject: SubjectInput | StoredSubject): Promise<void> {
    this.#rejectClosed()
    const name = this.#nameMeant(subject)
    const bans = this.#inForce.ownStatesOf(name).filter(({ limit }) => limit.algorithm.strikes !== undefined)
    this.#comparison.reset(bans)
    await Promise.all([
      this.overrides.remove({ subject: { stored: name }, ban: true }),
      bans.length > 0 && this.#store.reset(bans),
    ])
  }

  async credit(
    subject: SubjectInput | StoredSubject,
    units: number,
    options: AnyCheckOptions & CreditOptions,
  ): Promise<CreditAnswer> {
    this.#rejectClosed()
    const credit = parseCredit(units, options)
    const { id: _id, expires: _expires, ...asked } = options
    const states = this.#inForce.ownStatesOf(this.#nameMeant(subject), asked)
    return creditAll(this.#store, states, asked, credit)
  }

  async usage(
    subject: SubjectInput | StoredSubject,
    options?: AnyCheckOptions,
  ): Promise<readonly QuotaUsage[]> {
    this.#rejectClosed()
    return usageOf(this.#store, this.#inForce.ownStatesOf(this.#nameMeant(subject), options))
  }

  async inspect(subject: SubjectInput | StoredSubject, options: InspectOptions = {}): Promise<Inspection> {
    this.#rejectClosed()
    const { names, budgets } = this.#inForce.now
    if (options.tier !== undefined) names.policyOrTier({ tier: options.tier })
    const name = this.#nameMeant(subject)
    const { tier, states } = this.#inForce.keptAbout(name, options)
    const inspector = {
      budgets,
      plans: this.#plans,
      ask: (check: PendingCheck) => Promise.resolve(this.#decide(check).result()),
      source: this.#store.source,
      fleet: this.#store.control?.fleet,
    }
    return inspect(inspector, name, tier, states)
  }

  explain(facts: RequestFacts): Explanation {
    const { rules, requests } = this.#file
    return rules.explain(requests, facts, this.#inForce.now.budgets)
  }

  nameOf(subject: SubjectInput): string {
    return this.#inForce.now.nameSubject(subject)
  }

  addressOf(request: HttpRequest): SubjectInput {
    if (this.#callers === null) throw noConfig('addressOf')
    return this.#callers.addressOf(request)
  }

  get identify(): Identify {
    if (this.#callers === null) throw noConfig('identify')
    return this.#callers.identify
  }

  async reload(config: Config): Promise<void> {
    if (this.#callers === null) throw noConfig('reload')
    rejectNoConfig(config)
    this.#callers.rejectUnusable(config)
    await this.#inForce.reload(config)
  }

  ready(): Promise<void> {
    return this.#operators.ready()
  }

  fallback(about: FaultFacts & Partial<Pick<RequestFacts, 'method' | 'path'>> = {}): Decision {
    this.#counter.faults++
    const check = new PendingCheck(new Plan(this.#context, NO_LABELS, []), '', 1)
    const isDenied = this.rejectsFault(about)
    check.charged = isDenied ? -1 : 0
    check.settle(isDenied ? 'closed' : 'open')
    return check.decision
  }

  rejectsFault(about: FaultFacts & Partial<Pick<RequestFacts, 'method' | 'path'>> = {}): boolean {
    const { file, names } = this.#inForce.now
    if (about.policy !== undefined && names.bindsNobody(about.policy)) return false
    if (about.onStoreFailure !== undefined) return about.onStoreFailure === 'closed'
    return file === null ? this.#store.onStoreFailure === 'closed' : file.requests.deniesFault(about)
  }

  counts(): LimiterCounts {
    return this.#counter.read()
  }

  stopWaiting(): void {
    this.#queue.close()
  }

  pending(): Promise<unknown> | null {
    return this.#store.pending?.() ?? null
  }

  [INSIDE](): LimiterInside {
    this.#rejectClosed()
    const { nameSubject, active } = this.#inForce.now
    const decide = (check: PendingCheck) => this.#decide(check).result()
    return { nameSubject, active, plans: this.#plans, store: this.#store, decide }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#queue.close()
    this.#operators.stop()
    this.#unwatch()
    await this.#comparison.close()
    await Promise.all([this.#permits.close(), this.#store.close()])
  }

  #resolveRequest(facts: RequestFacts): PendingCheck {
    const check = this.#file.requests.resolve(facts, false)
    check.request = facts
    return check
  }

  /** Has a check decided, now or later. */
  #decide(check: PendingCheck): PendingCheck {
    if (this.#isClosed) this.#rejectClosed()
    const { plan } = check
    const { recorder } = this.#context
    check.atUs = this.#clock.nowUs()
    if (recorder !== null) check.exemplar = recorder.labels()
    if (plan.asksNothing) {
      check.charged = plan.labels.bypass === 'banned' ? -1 : 0
      check.settle('none')
    } else if (plan.isCompared) {
      this.#comparison.decide(check)
    } else decideBy(this.#store, check)
    return check
  }

  /** A ban has begun. */
  #onBan(check: Check, level: number): void {
    const policy = policyOf(check.name)
    this.#counter.countBan(policy)
    this.#emit?.({ type: 'ban', policy, level })
  }

  /** Counts a decision and tells the listener. */
  #onDecided(check: PendingCheck): void {
    for (const { index, percent } of check.crossings()) {
      const { name, limit } = check.plan.limits[index] as NamedLimit
      const subject = check.subjectOf(index)
      this.#emit?.({ type: 'threshold', policy: policyOf(name), quota: limit.id, percent, subject })
    }
    this.#context.recorder?.decided(check)
    if (check.plan.hasShadow && !check.plan.isCompared) this.#counter.countShadow(check)
    this.#emit?.(decisionEvent(check.decision))
  }

  /** What the policy file brings; throws for a limiter that has none. */
  get #file(): CurrentFile {
    const { file } = this.#inForce.now
    if (file === null) throw noConfig('request')
    return file
  }

  /** Returns the name of a subject that an operator means. */
  #nameMeant(subject: unknown): string {
    return storedName(subject) ?? this.#inForce.now.nameSubject(subject as SubjectInput)
  }

  /** Only the limiter that charged a decision knows what of it was given back already. */
  #rejectForeign(decision: unknown): void {
    if (!(decision instanceof Decision) || Decision.checkOf(decision).plan.context === this.#context) return
    throw new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
      field: 'decision',
      expected: 'one that this limiter has made',
      got: 'one of another',
    })
  }

  #rejectClosed(): void {
    if (!this.#isClosed) return
    throw new HeadgateError('ERR_HEADGATE_CLOSED', {
      field: 'limiter',
      expected: 'an open limiter',
      got: 'one that was closed',
    })
  }

  /** Whether a settlement comes after `close()`. Warns once, but not for states of this process, which end with it. */
  #isTooLate(): boolean {
    if (this.#isClosed && !this.#isWarnedOfLateSettling && this.#store.source !== 'memory') {
      this.#isWarnedOfLateSettling = true
      this.#logger.warn({ code: SETTLED_AFTER_CLOSE }, `${SETTLED_AFTER_CLOSE}: ${SETTLED_AFTER_CLOSE_TEXT}`)
    }
    return this.#isClosed
  }
}

const SETTLED_AFTER_CLOSE = 'WARN_HEADGATE_SETTLED_AFTER_CLOSE'
const SETTLED_AFTER_CLOSE_TEXT =
  'settle: a request was settled after close(), so its estimate stands; let requests end before you close'

function storeOf({ store, clock }: CommonOptions): Store {
  if (store === undefined) return new MemoryStore(clock === undefined ? {} : { clock })
  if (typeof store?.decide === 'function') return store
  const expected = 'what memoryStore() or redisStore() returns'
  throw invalidOption('store', expected, store)
}

/** Validates a config that a program passes, bypassing the types. */
function rejectNoConfig(config: unknown): void {
  const { [RULES]: rules, tiers } = (config ?? {}) as Partial<Config>
  if (typeof rules === 'object' && typeof tiers === 'object') return
  throw invalidOption('config', 'what loadConfig() or defineConfig() returns', config)
}

function noConfig(field: string): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
    field,
    expected: 'a limiter with a policy file, createLimiter({ config })',
    got: 'one with policies',
  })
}
