/**
 * A policy file in force: requests in, decisions out. Rules, overrides and control determine which limits apply
 * (`policy/resolve.ts`), the store decides them, and non-binding limits (shadow, candidate, compare) are counted.
 */

import type { Decision } from '../decision/decision.js'
import type { Answer, Question } from '../engine/question.js'
import { SingleLimitRequests } from '../fast-path/single-limit-requests.js'
import { type Ask, parseCost } from '../limiter/ask.js'
import { asksByName } from '../limiter/asks-by-name.js'
import { createFrontDoor, type Resolved } from '../limiter/front-door.js'
import type { FaultFacts, Limiter } from '../limiter/limiter.js'
import { emitterOf } from '../observe/emit.js'
import type { DecisionEvent, GateEvent } from '../observe/event.js'
import { type Logger, parseLogger } from '../observe/logger.js'
import { warnSparingly } from '../observe/sparingly.js'
import { watchGate } from '../observe/statistics/attached.js'
import type { Statistics } from '../observe/statistics/statistics.js'
import type { Config } from '../policy/config.js'
import { statesOf } from '../policy/question-of.js'
import type { RequestFacts } from '../policy/request-facts.js'
import type { Resolution } from '../policy/resolve.js'
import { memoryControl } from '../store/memory/memory-control.js'
import type { Action } from '../store/stage.js'
import type { Store } from '../store/store.js'
import { type StoredSubject, type SubjectInput, type SubjectOptions, storedName } from '../subject/subject.js'
import { type Clock, systemClock } from '../time/clock.js'
import { createComparison } from './comparison.js'
import { createCounter, type GateCounts } from './counts.js'
import { CurrentConfig, versionOf } from './current-config.js'
import { type Explanation, explain } from './explanation.js'
import { createFileCallers, type FileCallers } from './file-callers.js'
import { createGivenLimits, type GivenLimitDecider } from './given-limits.js'
import { type Inspection, type InspectOptions, inspect, ownStates } from './inspection.js'
import { type ControlApi, createOperators, type OverridesApi } from './operators.js'
import { OverrideCache } from './override-cache.js'
import { refuseOptions, refuseOtherFleet } from './refusals.js'
import { decidedPolicy, Resolver } from './resolver.js'

export interface GateOptions<PolicyName extends string = string, TierName extends string = string> {
  /** From `loadConfig` or `defineConfig`. */
  readonly config: Config<PolicyName, TierName>
  /** Where limits are kept. Default: in this process, the embedded store. */
  readonly store?: Store
  /** How subjects are named, and which of them are secrets. */
  readonly subject?: SubjectOptions
  readonly clock?: Clock
  /** Where lines are written. Default: the console. */
  readonly logger?: Logger
  /**
   * Called for decisions, reloads, control and overrides, in the async context the gate was made in. Costs nothing
   * if left out.
   */
  readonly onEvent?: (event: DecisionEvent | GateEvent) => void
  /** Where decisions are counted. Default: where those of the store are, or nowhere. */
  readonly statistics?: Statistics
  /** Called instead of the logger for what needs an operator's attention: ignored values, an undefined tier. */
  readonly onWarning?: (message: string) => void
}

/**
 * A limiter that finds the limits of a request by itself. Names of policies and tiers that are missing in a
 * configuration from `defineConfig` fail to compile.
 */
export interface Gate<PolicyName extends string = string, TierName extends string = string>
  extends Limiter<PolicyName, TierName>,
    GivenLimitDecider,
    FileCallers {
  /** Decides a request by the rules. A denial is a decision, never an error. */
  request(facts: RequestFacts<TierName>): Promise<Decision>
  /** Decides like `request`, synchronously where possible; see `checkNow`. A skipped path is one more such case. */
  requestNow(facts: RequestFacts<TierName>): Decision | Promise<Decision>
  /** Answers what `request` would, and changes nothing; `remaining` is what is left before the request. */
  peekRequest(facts: RequestFacts<TierName>): Promise<Decision>
  /**
   * Forgets what the subject has used: in the given policy and scope, or in everything the file keeps about it
   * alone.
   */
  reset(subject: SubjectInput | StoredSubject, ask?: Omit<Ask<PolicyName, TierName>, 'cost'>): Promise<void>
  /** Returns all limits of a subject and their state, read from the store; rejects while that cannot be asked. */
  inspect(subject: SubjectInput | StoredSubject, options?: InspectOptions<TierName>): Promise<Inspection>
  /** Says which rules a request matches and why; asks and charges nothing. */
  explain(facts: RequestFacts<TierName>): Explanation
  /**
   * Returns the name a subject is stored under: a digest if the policy file or its type says that its id is a
   * secret.
   */
  nameOf(subject: SubjectInput): string
  /** Puts another policy file in force, synchronously and as a whole. Usage is kept. */
  reload(config: Config): void
  /**
   * Does the same without blocking requests, however large the file: it is prepared a millisecond at a time, then
   * put in force as a whole. Rejects where `reload` throws, and then changes nothing. The reload that began last
   * wins.
   */
  reloadInBackground(config: Config): Promise<void>
  /** Settles when control and overrides were read once, or could not be. */
  ready(): Promise<void>
  readonly control: ControlApi
  readonly overrides: OverridesApi
  /**
   * Decides by the rules that match what is known of the request, so that a login is refused if its rule says so.
   */
  decideFault(about?: FaultFacts & Partial<Pick<RequestFacts, 'method' | 'path'>>): Decision
  refusesFault(about?: FaultFacts & Partial<Pick<RequestFacts, 'method' | 'path'>>): boolean
  counts(): GateCounts
  /** Returns unfinished background work, for `waitUntil`; null if there is none. See `Limiter`. */
  underWay(): Promise<unknown> | null
}

export function createGate<PolicyName extends string = string, TierName extends string = string>(
  options: GateOptions<PolicyName, TierName>,
): Gate<PolicyName, TierName>
export function createGate(options: GateOptions): Gate {
  refuseOptions(options)
  const clock = options.clock ?? systemClock
  const counter = createCounter()
  const logger = parseLogger(options.logger)
  const emit = emitterOf<DecisionEvent | GateEvent>(options.onEvent)
  const { store: givenStore, clock: givenClock, statistics: given } = options
  const door = createFrontDoor({ store: givenStore, clock: givenClock, statistics: given, emit, logger })
  const { store, stage, context, recorder, statistics } = door
  refuseOtherFleet(options.config, store)
  const warn = warnSparingly(options.onWarning ?? (message => logger.warn({}, message)), clock)
  const overrides = new OverrideCache(clock, warn, stored => emit?.({ type: 'override', stored }))
  const callers = createFileCallers(() => current.now.config)
  const current = new CurrentConfig({
    config: options.config,
    subject: options.subject,
    store,
    clock,
    overrides,
    singleLimits: (active, nameSubject) => new SingleLimitRequests(active, door, nameSubject),
    warn,
    refuse: callers.refuseUnusable,
    onReload({ rules }) {
      counter.reload()
      emit?.({ type: 'reload', rules: rules.length })
    },
  })
  const { onStoreFailure } = store
  const resolver = new Resolver(current, { clock, onStoreFailure, warn })
  const onDivergence = counter.divergence
  const comparison = createComparison({
    clock,
    stage,
    context,
    recorder,
    warn,
    onAnswer: countShadow,
    onDivergence,
    onFreed: door.turns.freed,
    isTooLate: door.isTooLate,
  })

  /** Counts the requests that shadow limits would have denied. */
  function countShadow(question: Question, answer: Answer): void {
    if (answer.shadow.length > 0) counter.shadow(question, answer)
  }

  /** Converts a resolution for the front door; in mode `compare` the process decides. */
  function toResolved(resolution: Resolution): Resolved {
    const { cost, compare } = resolution
    const question = current.now.budgets.widen(resolution.question)
    const policy = decidedPolicy(resolution)
    const decideHere = compare
      ? (action: Action) => comparison.decide(action, question, policy, cost)
      : undefined
    return { question, policy, cost, onAnswer: countShadow, ...(decideHere && { decideHere }) }
  }

  /** Returns the name of a subject that an operator means. */
  function nameMeant(subject: unknown): string {
    return storedName(subject) ?? current.now.nameSubject(subject as SubjectInput)
  }

  async function settle(decision: Decision, actual: number): Promise<void> {
    await (comparison.settle(decision, actual) ?? door.settle(decision, actual))
  }

  const requests = door.through<RequestFacts, undefined>({
    single: facts => current.now.singleLimits.policyFor(facts),
    subjectOf: facts => facts.subject as string,
    resolve: facts => toResolved(resolver.request(facts)),
  })
  const asks = asksByName(
    door,
    {
      single: () => null,
      subjectOf: subject => subject as string,
      resolve(subject, ask) {
        const cost = ask?.cost === undefined ? 1 : parseCost(ask.cost)
        return toResolved(resolver.ask(current.now.nameSubject(subject), ask, cost))
      },
    },
    settle,
  )
  const givenLimits = createGivenLimits(stage, emit, () => {
    door.refuseClosed()
    const { nameSubject, active, config } = current.now
    return {
      nameSubject,
      control: active.control,
      onStoreFailure: config.onStoreFailure,
      decision: context,
    }
  })
  const operators = createOperators({
    store: store.control ?? memoryControl(clock),
    nameSubject: nameMeant,
    active: () => current.now.active,
    onControl(control) {
      const isNews = JSON.stringify(control) !== JSON.stringify(current.now.active.control)
      if (isNews) emit?.({ type: 'control', control })
      current.setControl(control)
    },
    overrides,
    warn,
  })
  const unwatch = watchGate(statistics, () => ({
    ...counter.counts(),
    control: current.now.active.control,
    overrides: overrides.size,
    configVersion: versionOf(current.now.config),
    configLoadedAtMs: current.now.loadedAtMs,
  }))

  return {
    get policyNames() {
      return [...current.now.active.policies.keys()]
    },
    get tierNames() {
      return [...current.now.active.tiers.keys()]
    },
    ...asks,
    request: facts => requests.check(facts, undefined),
    requestNow: facts => requests.checkNow(facts, undefined),
    peekRequest: facts => requests.peek(facts, undefined),
    explain: facts => explain(resolver.request(facts), current.now.budgets),
    async inspect(subject, options = {}) {
      door.refuseClosed()
      if (options.tier !== undefined) resolver.policyOrTier({ tier: options.tier })
      const { active, budgets } = current.now
      const inspector = { active, budgets, stage, nowUs: clock.nowUs(), fleet: store.control?.fleet }
      return inspect(inspector, nameMeant(subject), options)
    },
    async refund(decision, units) {
      door.refuseClosed()
      return comparison.refund(decision, units) ?? door.refund(decision, units)
    },
    ...givenLimits,
    async reset(subject, ask) {
      door.refuseClosed()
      const name = nameMeant(subject)
      const states =
        ask === undefined
          ? ownStates({ active: current.now.active, nowUs: clock.nowUs() }, name)
          : resolver.ask(name, ask as Ask<string, string>, 0).levels.flatMap(statesOf)
      comparison.reset(states)
      await stage.reset(states)
    },
    get identify() {
      return callers.identify
    },
    addressOf: callers.addressOf,
    nameOf: subject => current.now.nameSubject(subject),
    reload: config => current.reload(config),
    reloadInBackground: config => current.reloadInBackground(config),
    ready: operators.ready,
    control: operators.control,
    overrides: operators.overrides,
    decideFault(about) {
      counter.fault()
      return door.decideFault(resolver.refusesFault(about) ? 'closed' : 'open')
    },
    refusesFault: about => resolver.refusesFault(about),
    counts: counter.counts,
    underWay: () => store.underWay?.() ?? null,
    async close() {
      operators.stop()
      unwatch()
      await comparison.close()
      await door.close()
    },
  }
}
