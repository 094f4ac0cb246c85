/**
 * A policy file in force: requests in, decisions out. Rules, overrides and control say which limits apply
 * (`policy/resolve.ts`), the store decides them, and what only watches (shadow, candidate, compare) is counted.
 */
import {
  type Ask,
  closedError,
  namesOf,
  parseCost,
  parseFailureMode,
  parseScope,
  unknownName,
} from '../ask.js'
import { type Clock, systemClock } from '../clock.js'
import { Decision } from '../decision/decision.js'
import { undecided } from '../decision/undecided.js'
import type { Answer, Check, Question } from '../engine/question.js'
import { unexpected } from '../errors.js'
import { LateDecision } from '../late-decision.js'
import type { FaultAbout, Limiter } from '../limiter.js'
import type { Charge, Config } from '../policy/config.js'
import { NORMAL } from '../policy/control.js'
import type { Level } from '../policy/find-levels.js'
import { putInForce, type TimedOverride } from '../policy/in-force.js'
import { pathReadings } from '../policy/path-readings.js'
import type { DecidedPolicy } from '../policy/policies.js'
import type { CanonicalFacts, RequestFacts } from '../policy/request-facts.js'
import { type Resolution, resolve, resolveAsk } from '../policy/resolve.js'
import { createRefunds } from '../refunds.js'
import { memoryControl } from '../store/memory/memory-control.js'
import { memoryStore } from '../store/memory/memory-store.js'
import type { Eventually, Store } from '../store/store.js'
import { type How, putOf } from '../store/waiter.js'
import { createSubjectNamer, type SubjectInput, type SubjectOptions } from '../subject/subject.js'
import { createCounter, type GateCounts } from './counts.js'
import { type Explanation, explain } from './explanation.js'
import { type ControlDesk, createOperators, type OverrideDesk } from './operators.js'
import { refuseNoConfig, refuseNonText, refuseOtherFleet } from './refusals.js'
import { warnSparingly } from './warn-sparingly.js'

export interface GateOptions {
  /** From `loadConfig` or `defineConfig`. */
  readonly config: Config
  /** Where limits are kept. Left out: in this process, the embedded store. */
  readonly store?: Store
  /** How subjects become names, and which of them are secrets. */
  readonly subject?: SubjectOptions
  readonly clock?: Clock
  /** Told what needs an operator's eye: values that are ignored, a tier nobody defined. Default: `console.warn`. */
  readonly onWarning?: (message: string) => void
}

/** A limiter that finds out by itself which limits a request is asked against. */
export interface Gate extends Limiter<string, string> {
  /** Decides a request by the rules. A denial is a decision, never an error. */
  request(facts: RequestFacts): Promise<Decision>
  /** Says which rules a request matches and why; asks and charges nothing. */
  explain(facts: RequestFacts): Explanation
  /** Puts another policy file in force, at once and as a whole. What subjects have used is kept. */
  reload(config: Config): void
  /** Settles when control and overrides were read once, or could not be. */
  ready(): Promise<void>
  readonly control: ControlDesk
  readonly overrides: OverrideDesk
  /** As the rules say that match what is known of the request, so that a login is refused where they say so. */
  decideFault(about?: FaultAbout & Partial<Pick<RequestFacts, 'method' | 'path'>>): Decision
  counts(): GateCounts
}

/** Stands for a caller of whom nothing is known. */
const NOBODY: SubjectInput = 'nobody:unknown'

export function createGate(options: GateOptions): Gate {
  refuseNoConfig(options?.config)
  const store = options.store ?? memoryStore(options.clock === undefined ? {} : { clock: options.clock })
  refuseOtherFleet(options.config, store)
  const clock = options.clock ?? systemClock
  const nameSubject = createSubjectNamer(options.subject)
  const nameText = (subject: string): string => nameSubject(subject as SubjectInput)
  const put = putOf(store)
  const context = { clock: store.clock ?? clock, source: store.source }
  /** Decides in mode `compare`, as if there were no other process. */
  const local = memoryStore({ clock })
  const localContext = { clock, source: local.source }
  const refund = createRefunds(store)
  const localRefund = createRefunds(local)
  const decidedLocally = new WeakSet<Decision>()
  const counter = createCounter()
  const warn = warnSparingly(options.onWarning ?? (message => console.warn(`[headgate] ${message}`)), clock)
  let config = options.config
  let control = NORMAL
  let overrides: readonly TimedOverride[] = []
  let inForce = putInForce(config, control, overrides, nameText)
  let closed = false

  function rebuild(): void {
    inForce = putInForce(config, control, overrides, nameText)
  }

  const operators = createOperators({
    store: store.control ?? memoryControl(clock),
    clock,
    nameSubject: nameText,
    inForce: () => inForce,
    onChange(newControl, newOverrides) {
      control = newControl
      overrides = newOverrides
      rebuild()
    },
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
      method: facts.method?.toUpperCase() ?? null,
      claimedMethod: facts.claimedMethod?.toUpperCase() ?? null,
      path: facts.path === undefined ? null : pathReadings(facts.path),
      tier: knownTier(facts.tier),
      scope: facts.scope ?? null,
      cost: facts.cost === undefined ? null : parseCost(facts.cost),
    }
  }

  /** A session may name a tier that the file has lost; its caller is limited like one without. */
  function knownTier(tier: string | undefined): string | null {
    if (tier === undefined) return null
    if (inForce.tiers.has(tier)) return tier
    warn(
      'tier: a request named one that the policy file does not define; its caller is treated as one without',
    )
    return null
  }

  function resolveAsked(subject: SubjectInput, ask: Ask<string, string>, cost: number): Resolution {
    if (typeof ask !== 'object' || ask === null || (ask.policy === undefined) === (ask.tier === undefined)) {
      throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'ask', 'one of { policy } and { tier }', namesOf(ask))
    }
    const { policies, tiers } = inForce
    if (ask.policy !== undefined && !policies.has(ask.policy))
      throw unknownName('policy', ask.policy, policies)
    if (ask.tier !== undefined && !tiers.has(ask.tier)) throw unknownName('tier', ask.tier, tiers)
    const asked = { subject: nameSubject(subject), charge: ask as Charge, scope: parseScope(ask.scope), cost }
    const resolution = resolveAsk(inForce, asked, clock.nowUs())
    if (ask.onStoreFailure === undefined) return resolution
    const { alternatives, shadow } = resolution.question
    const onStoreFailure = parseFailureMode(ask.onStoreFailure)
    return { ...resolution, question: { alternatives, shadow, onStoreFailure } }
  }

  function decide(how: How, resolution: Resolution): Promise<Decision> {
    const { question, cost } = resolution
    const policy = decidedPolicy(resolution)
    if (resolution.compare) return Promise.resolve(decideHere(how, question, policy, cost))
    const onAnswer = how === 'decide' ? countShadow : null
    const decision = new LateDecision(question, policy, cost, context, onAnswer)
    const answer = asksNothing(question) ? NOTHING_ASKED : put(how, question, decision)
    return answer === null ? decision.promise : decision.now(answer)
  }

  /** What shadow limits would have denied. */
  function countShadow(question: Question, answer: Answer): void {
    if (answer.shadow.length > 0) counter.shadow(question, answer)
  }

  /** Mode `compare`: this process decides, and the store is asked beside it. */
  function decideHere(how: How, question: Question, policy: DecidedPolicy, cost: number): Decision {
    const answer = local[how](question) as Answer
    if (how === 'decide') compareBeside(question, answer)
    const decision = Decision.on(question, answer, policy, cost, localContext)
    decidedLocally.add(decision)
    return decision
  }

  /** Nobody waits for it: the request has its decision. Only the store's own answers are compared, not its fallback's. */
  function compareBeside(question: Question, decided: Answer): void {
    const compare = (answer: Answer) => {
      if (answer.source === undefined && answer.charged >= 0 !== decided.charged >= 0) counter.divergence()
      countShadow(question, answer)
    }
    Promise.resolve()
      .then((): Eventually<Answer> => store.decide(question))
      .then(compare, error => warn(`compare: the store could not be asked: ${(error as Error).message}`))
  }

  /** Whether a request that could not be asked about is to be refused. What the rules let pass unasked still passes. */
  function refusesFault({ onStoreFailure, method, path }: Parameters<Gate['decideFault']>[0] = {}): boolean {
    if (onStoreFailure !== undefined) return onStoreFailure === 'closed'
    const byDefault = config.onStoreFailure ?? store.onStoreFailure
    try {
      const facts = { subject: NOBODY, ...(method && { method }), ...(path && { path }) }
      const { question } = resolve(inForce, canonical(facts), clock.nowUs())
      const isAsked = question.alternatives.every(checks => checks.length > 0)
      return isAsked && (question.onStoreFailure ?? byDefault) === 'closed'
    } catch {
      // It may be these facts that nothing can be made of.
      return byDefault === 'closed'
    }
  }

  function request(facts: RequestFacts): Promise<Decision> {
    try {
      if (closed) throw closedError()
      return decide('decide', resolve(inForce, canonical(facts), clock.nowUs()))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  function askFor(how: How, subject: SubjectInput, ask: Ask<string, string>): Promise<Decision> {
    try {
      if (closed) throw closedError()
      const cost = ask?.cost === undefined ? 1 : parseCost(ask.cost)
      return decide(how, resolveAsked(subject, ask, cost))
    } catch (error) {
      return Promise.reject(error)
    }
  }

  return {
    get policyNames() {
      return [...inForce.policies.keys()]
    },
    get tierNames() {
      return [...inForce.tiers.keys()]
    },
    request,
    explain: facts => explain(resolve(inForce, canonical(facts), clock.nowUs())),
    check: (subject, ask) => askFor('decide', subject, ask),
    peek: (subject, ask) => askFor('peek', subject, ask),
    async refund(decision, units) {
      if (closed) throw closedError()
      return decidedLocally.has(decision) ? localRefund(decision, units) : refund(decision, units)
    },
    async reset(subject, ask) {
      if (closed) throw closedError()
      const { levels } = resolveAsked(subject, ask as Ask<string, string>, 0)
      const states = levels.flatMap(statesOf)
      await local.reset(states)
      await store.reset(states)
    },
    reload(newConfig) {
      refuseNoConfig(newConfig)
      // One that cannot be put in force must not wait for the next change of control to fail again.
      inForce = putInForce(newConfig, control, overrides, nameText)
      config = newConfig
      counter.reload()
    },
    ready: operators.ready,
    control: operators.control,
    overrides: operators.overrides,
    decideFault(about) {
      counter.fault()
      return undecided(refusesFault(about) ? 'closed' : 'open', context)
    },
    counts: counter.counts,
    async close() {
      if (closed) return
      closed = true
      operators.stop()
      await store.close()
    },
  }
}

/** Everything a level keeps about its subject, whether it binds or not. */
function statesOf({ configured, subject, scope }: Level): Check[] {
  const limits = [...configured.policy.limits, ...configured.candidate]
  return limits.map(({ name, limit }) => ({ subject, scope, name, limit, cost: 0 }))
}

const NOTHING_ASKED: Answer = { charged: 0, verdicts: [[]], shadow: [] }

function asksNothing({ alternatives, shadow }: Question): boolean {
  return shadow.length === 0 && alternatives.some(checks => checks.length === 0)
}

function decidedPolicy({ levels, tier, unasked, headers, question }: Resolution): DecidedPolicy {
  const spoke = levels.find(({ part }) => part === 'decides') ?? levels[0]
  const onlyShadow =
    unasked === null && question.shadow.length > 0 && levels.every(({ part }) => part !== 'decides')
  return {
    name: spoke?.configured.policy.name ?? '',
    limits: [],
    tier,
    rule: spoke?.rule ?? null,
    unasked: onlyShadow ? 'shadow' : unasked,
    headers,
  }
}
