/**
 * A policy file in force: requests in, decisions out. Rules, overrides and control say which limits apply
 * (`policy/resolve.ts`), the store decides them, and what only watches (shadow, candidate, compare) is counted.
 */

import type { Decision } from '../decision/decision.js'
import type { Answer, Question } from '../engine/question.js'
import { show, unexpected } from '../errors/headgate-error.js'
import { SingleLimitRequests } from '../fast-path/single-limit-requests.js'
import { type Ask, namesOf, parseAlso, parseCost, parseScope, unknownName } from '../limiter/ask.js'
import { createFrontDoor, type Resolved } from '../limiter/front-door.js'
import type { FaultFacts, Limiter } from '../limiter/limiter.js'
import { reservationOf } from '../limiter/reservation.js'
import { budgetOf } from '../limiter/turns.js'
import { emitterOf } from '../observe/emit.js'
import type { DecisionEvent, GateEvent } from '../observe/event.js'
import { type Logger, parseLogger } from '../observe/logger.js'
import { warnSparingly } from '../observe/sparingly.js'
import { watchGate } from '../observe/statistics/attached.js'
import type { Statistics } from '../observe/statistics/statistics.js'
import { activateConfig } from '../policy/active-config.js'
import { methodsOf } from '../policy/claimed-methods.js'
import { type CompiledConfig, compileConfig } from '../policy/compiled-config.js'
import { type Charge, type Config, parseFailureMode } from '../policy/config.js'
import { NORMAL } from '../policy/control.js'
import { Ipv6Budgets } from '../policy/ipv6-budgets.js'
import { targetKey } from '../policy/override.js'
import { pathReadings } from '../policy/path-readings.js'
import { statesOf } from '../policy/question-of.js'
import type { CanonicalFacts, RequestFacts } from '../policy/request-facts.js'
import { type Resolution, resolve, resolveAsk } from '../policy/resolve.js'
import { memoryControl } from '../store/memory/memory-control.js'
import type { Action } from '../store/stage.js'
import type { Store } from '../store/store.js'
import {
  createSubjectNamer,
  type StoredSubject,
  type SubjectInput,
  type SubjectNamer,
  type SubjectOptions,
  storedName,
} from '../subject/subject.js'
import { type Clock, systemClock } from '../time/clock.js'
import { runAtOnce, runInSlices } from '../time/steps.js'
import { createComparison } from './comparison.js'
import { versionOf } from './config-version.js'
import { createCounter, type GateCounts } from './counts.js'
import { decidedPolicy } from './decided-policy.js'
import { type Explanation, explain } from './explanation.js'
import { createFileCallers, type FileCallers } from './file-callers.js'
import { createGivenLimits, type GivenLimitDecider } from './given-limits.js'
import { type Inspection, type InspectOptions, inspect, ownStates } from './inspection.js'
import { type ControlApi, createOperators, type OverridesApi } from './operators.js'
import { OverrideCache } from './override-cache.js'
import { refuseNonText, refuseOptions, refuseOtherFleet, refuseReload } from './refusals.js'

export interface GateOptions<PolicyName extends string = string, TierName extends string = string> {
  /** From `loadConfig` or `defineConfig`. */
  readonly config: Config<PolicyName, TierName>
  /** Where limits are kept. Left out: in this process, the embedded store. */
  readonly store?: Store
  /** How subjects become names, and which of them are secrets. */
  readonly subject?: SubjectOptions
  readonly clock?: Clock
  /** Where lines are written. Default: the console. */
  readonly logger?: Logger
  /**
   * Told of decisions, reloads, control and overrides, in the async context the gate was made in. Left out: costs
   * nothing.
   */
  readonly onEvent?: (event: DecisionEvent | GateEvent) => void
  /** Where decisions are counted. Left out: where those of the store are, or nowhere. */
  readonly statistics?: Statistics
  /** Told what needs an operator's eye, instead of the logger: values that are ignored, a tier nobody defined. */
  readonly onWarning?: (message: string) => void
}

/**
 * A limiter that finds out by itself which limits a request is asked against. Names of policies and tiers that a
 * configuration from `defineConfig` does not have do not compile.
 */
export interface Gate<PolicyName extends string = string, TierName extends string = string>
  extends Limiter<PolicyName, TierName>,
    GivenLimitDecider,
    FileCallers {
  /** Decides a request by the rules. A denial is a decision, never an error. */
  request(facts: RequestFacts<TierName>): Promise<Decision>
  /**
   * `request` without the wait where there is nothing to wait for; see `checkNow`. A path the file skips is one more.
   */
  requestNow(facts: RequestFacts<TierName>): Decision | Promise<Decision>
  /** Says what `request` would and changes nothing; `remaining` is what is left before the request. */
  peekRequest(facts: RequestFacts<TierName>): Promise<Decision>
  /** Forgets what the subject has used: of what is asked, or of all that the file keeps about it alone. */
  reset(subject: SubjectInput | StoredSubject, ask?: Omit<Ask<PolicyName, TierName>, 'cost'>): Promise<void>
  /** All limits of a subject and their state, read from the store: rejects while that cannot be asked. */
  inspect(subject: SubjectInput | StoredSubject, options?: InspectOptions): Promise<Inspection>
  /** Says which rules a request matches and why; asks and charges nothing. */
  explain(facts: RequestFacts<TierName>): Explanation
  /** The name a subject is stored under: a digest where the policy file or its type says that its id is a secret. */
  nameOf(subject: SubjectInput): string
  /** Puts another policy file in force, at once and as a whole. What subjects have used is kept. */
  reload(config: Config): void
  /**
   * The same without holding requests up, however large the file: it is made ready a millisecond at a time, then put in
   * force as a whole. Rejects where `reload` throws, and changes nothing then. The reload that began last wins.
   */
  reloadInBackground(config: Config): Promise<void>
  /** Settles when control and overrides were read once, or could not be. */
  ready(): Promise<void>
  readonly control: ControlApi
  readonly overrides: OverridesApi
  /**
   * Decides by the rules that match what is known of the request, so that a login is refused where its rule says so.
   */
  decideFault(about?: FaultFacts & Partial<Pick<RequestFacts, 'method' | 'path'>>): Decision
  counts(): GateCounts
  /** Work that was begun and is not over, for `waitUntil`; null when there is none. See `Limiter`. */
  underWay(): Promise<unknown> | null
}

/** Stands for a caller of whom nothing is known. */
const NOBODY: SubjectInput = 'nobody:unknown'

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
  const door = createFrontDoor({ store: givenStore, clock: givenClock, statistics: given, emit })
  const { store, stage, context, recorder, statistics } = door
  refuseOtherFleet(options.config, store)
  const warn = warnSparingly(options.onWarning ?? (message => logger.warn({}, message)), clock)
  const comparison = createComparison({
    ...{ clock, stage, context, recorder, warn, onAnswer: countShadow, onDivergence: counter.divergence },
  })
  const namerFor = ({ secretTypes }: Config): SubjectNamer =>
    createSubjectNamer({
      onWarning: ({ code, message }) => warn(`${code}: ${message}`),
      ...options.subject,
      secretTypes: [...(options.subject?.secretTypes ?? []), ...secretTypes],
    })
  let config = options.config
  let configLoadedAtMs = clock.unixMs()
  let nameSubject = namerFor(config)
  const nameText = (subject: string): string => nameSubject(subject as SubjectInput)
  /** The name of a subject that an operator means. */
  const nameMeant = (subject: unknown): string => storedName(subject) ?? nameSubject(subject as SubjectInput)
  const callers = createFileCallers(() => config)
  const defaultFailure = store.onStoreFailure ?? 'local'
  const overrides = new OverrideCache(clock, warn, stored => emit?.({ type: 'override', stored }))
  let active = activateConfig(runAtOnce(compileConfig(config, nameText)), {
    control: NORMAL,
    overrides,
    defaultFailure,
  })
  let budgets = budgetsFor(config)
  const singleLimitRequests = () =>
    new SingleLimitRequests(active, stage, { ...context, recorder }, nameSubject)
  let plain = singleLimitRequests()
  let reloadsBegun = 0
  let activeReload = 0

  function budgetsFor({ ipv6Networks }: Config): Ipv6Budgets {
    const isOverridden = (subject: string): boolean =>
      overrides.size > 0 && overrides.find(targetKey({ subject }), clock.nowUs()) !== null
    const isNamed = (subject: string): boolean => active.subjects.has(subject) || isOverridden(subject)
    return new Ipv6Budgets(options.subject?.ipv6Networks ?? ipv6Networks, isNamed)
  }

  const operators = createOperators({
    store: store.control ?? memoryControl(clock),
    nameSubject: nameMeant,
    active: () => active,
    onControl(control) {
      const isNews = JSON.stringify(control) !== JSON.stringify(active.control)
      if (isNews) emit?.({ type: 'control', control })
      active = activateConfig(active, { control, overrides, defaultFailure })
      plain = singleLimitRequests()
    },
    overrides,
    warn,
  })

  function canonical(facts: RequestFacts): CanonicalFacts {
    refuseNonText(facts)
    const given = Array.isArray(facts.subject)
      ? (facts.subject as SubjectInput[])
      : [facts.subject as SubjectInput]
    if (given.length === 0) {
      throw unexpected('ERR_HEADGATE_INVALID_SUBJECT', 'subject', 'at least one', given)
    }
    return {
      subjects: given.map(nameSubject),
      methods: methodsOf(facts),
      path: facts.path === undefined ? null : (pathReadings(facts.path) ?? 'too-many'),
      tier: knownTier(facts.tier),
      scope: facts.scope ?? null,
      cost: facts.cost === undefined ? null : parseCost(facts.cost),
    }
  }

  /** A session may name a tier that the file has lost; its caller is limited like one without. */
  function knownTier(tier: string | undefined): string | null {
    if (tier === undefined) return null
    if (active.tiers.has(tier)) return tier
    const named = show(tier)
    warn(
      `tier: a request named ${named}, which the policy file does not define; its caller is treated as one without`,
      'tier',
    )
    return null
  }

  /** Checks that the file has the policy or tier that an ask names. */
  function chargeOf(ask: Charge): Charge {
    if (typeof ask !== 'object' || ask === null || (ask.policy === undefined) === (ask.tier === undefined)) {
      throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'ask', 'one of { policy } and { tier }', namesOf(ask))
    }
    const { policies, tiers } = active
    if (ask.policy !== undefined && !policies.has(ask.policy))
      throw unknownName('policy', ask.policy, policies)
    if (ask.tier !== undefined && !tiers.has(ask.tier)) throw unknownName('tier', ask.tier, tiers)
    return ask
  }

  function resolveAsked(subject: string, ask: Ask<string, string>, cost: number): Resolution {
    const also = parseAlso(ask).map(one => ({ subject: nameSubject(one.subject), charge: chargeOf(one) }))
    const asked = {
      subject,
      charge: chargeOf(ask),
      scope: parseScope(ask.scope),
      cost,
      also,
    }
    const resolution = resolveAsk(active, asked, clock.nowUs())
    if (ask.onStoreFailure === undefined) return resolution
    const { alternatives, shadow } = resolution.question
    const onStoreFailure = parseFailureMode(ask.onStoreFailure)
    return { ...resolution, question: { alternatives, shadow, onStoreFailure } }
  }

  function resolvedBy(resolution: Resolution): Resolved {
    const { cost, compare } = resolution
    const question = budgets.widen(resolution.question)
    const policy = decidedPolicy(resolution)
    const decideHere = compare
      ? (action: Action) => comparison.decide(action, question, policy, cost)
      : undefined
    return { question, policy, cost, onAnswer: countShadow, ...(decideHere && { decideHere }) }
  }

  /** Counts the requests that shadow limits would have denied. */
  function countShadow(question: Question, answer: Answer): void {
    if (answer.shadow.length > 0) counter.shadow(question, answer)
  }

  /** Whether a request that could not be asked about is to be refused. What the rules let pass unasked still passes. */
  function refusesFault({ onStoreFailure, method, path }: Parameters<Gate['decideFault']>[0] = {}): boolean {
    if (onStoreFailure !== undefined) return onStoreFailure === 'closed'
    const byDefault = config.onStoreFailure ?? store.onStoreFailure
    try {
      const facts = { subject: NOBODY, ...(method && { method }), ...(path && { path }) }
      const { question } = resolve(active, canonical(facts), clock.nowUs())
      const isAsked = question.alternatives.every(checks => checks.length > 0)
      return isAsked && (question.onStoreFailure ?? byDefault) === 'closed'
    } catch {
      // The facts themselves may be what failed.
      return byDefault === 'closed'
    }
  }

  /** The steps to a file that is ready, and what puts it in force unless a later one is already. */
  function beginReload(newConfig: Config) {
    refuseReload(newConfig, options.config, store)
    callers.refuseUnusable(newConfig)
    const reload = ++reloadsBegun
    const newNamer = namerFor(newConfig)
    const steps = compileConfig(newConfig, subject => newNamer(subject as SubjectInput))
    const finish = (compiled: CompiledConfig) => {
      if (reload < activeReload) return
      activeReload = reload
      active = activateConfig(compiled, active)
      nameSubject = newNamer
      config = newConfig
      configLoadedAtMs = clock.unixMs()
      budgets = budgetsFor(config)
      plain = singleLimitRequests()
      counter.reload()
      emit?.({ type: 'reload', rules: config.rules.length })
    }
    return { steps, finish }
  }

  const requests = door.through<RequestFacts, undefined>({
    single: facts => plain.policyFor(facts),
    subjectOf: facts => facts.subject as string,
    resolve: facts => resolvedBy(resolve(active, canonical(facts), clock.nowUs())),
  })
  const asks = door.through<SubjectInput, Ask<string, string>>({
    single: () => null,
    subjectOf: subject => subject as string,
    resolve(subject, ask) {
      const cost = ask?.cost === undefined ? 1 : parseCost(ask.cost)
      return resolvedBy(resolveAsked(nameSubject(subject), ask, cost))
    },
  })

  const givenLimits = createGivenLimits(stage, emit, () => {
    door.refuseClosed()
    const { control } = active
    return { nameSubject, control, onStoreFailure: config.onStoreFailure, decision: context }
  })
  const unwatch = watchGate(statistics, () => ({
    ...counter.counts(),
    control: active.control,
    overrides: overrides.size,
    configVersion: versionOf(config),
    configLoadedAtMs,
  }))

  async function settle(decision: Decision, actual: number): Promise<void> {
    await (comparison.settle(decision, actual) ?? door.settle(decision, actual))
  }

  return {
    get policyNames() {
      return [...active.policies.keys()]
    },
    get tierNames() {
      return [...active.tiers.keys()]
    },
    ...asks,
    request: facts => requests.check(facts, undefined),
    requestNow: facts => requests.checkNow(facts, undefined),
    peekRequest: facts => requests.peek(facts, undefined),
    explain: facts => explain(resolve(active, canonical(facts), clock.nowUs()), budgets),
    async inspect(subject, options = {}) {
      door.refuseClosed()
      if (options.tier !== undefined) chargeOf({ tier: options.tier })
      const inspector = { active, budgets, stage, nowUs: clock.nowUs(), fleet: store.control?.fleet }
      return inspect(inspector, nameMeant(subject), options)
    },
    async refund(decision, units) {
      door.refuseClosed()
      return comparison.refund(decision, units) ?? door.refund(decision, units)
    },
    acquire: (subject, { timeoutMs, signal, ...ask }) =>
      door.turns.wait(budgetOf(subject, ask), () => asks.check(subject, ask as Ask<string, string>), {
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(signal && { signal }),
      }),
    settle,
    reserve: async (subject, ask) => reservationOf(await asks.check(subject, ask), settle),
    ...givenLimits,
    async reset(subject, ask) {
      door.refuseClosed()
      const states =
        ask === undefined
          ? ownStates({ active, nowUs: clock.nowUs() }, nameMeant(subject))
          : resolveAsked(nameMeant(subject), ask as Ask<string, string>, 0).levels.flatMap(statesOf)
      comparison.reset(states)
      await stage.reset(states)
    },
    get identify() {
      return callers.identify
    },
    nameOf: subject => nameSubject(subject),
    reload(newConfig) {
      const { steps, finish } = beginReload(newConfig)
      finish(runAtOnce(steps))
    },
    async reloadInBackground(newConfig) {
      const { steps, finish } = beginReload(newConfig)
      finish(await runInSlices(steps))
    },
    ready: operators.ready,
    control: operators.control,
    overrides: operators.overrides,
    decideFault(about) {
      counter.fault()
      return door.decideFault(refusesFault(about) ? 'closed' : 'open')
    },
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
