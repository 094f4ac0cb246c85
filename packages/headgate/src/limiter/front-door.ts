/**
 * The front door to a store, shared by limiter and gate: a question goes in, a decision comes out. They differ only
 * in how they find what to ask, which is a `Way`.
 */
import type { Decision, DecisionContext } from '../decision/decision.js'
import { undecided } from '../decision/undecided.js'
import type { Answer, FailureMode, Question } from '../engine/question.js'
import { onlyCheckOf } from '../engine/single-question.js'
import { HeadgateError, unexpected } from '../errors/headgate-error.js'
import type { SingleLimitPolicy } from '../fast-path/single-limit-policy.js'
import { type Emit, emitting } from '../observe/emit.js'
import type { DecisionEvent } from '../observe/event.js'
import type { Logger } from '../observe/logger.js'
import { recorderOf } from '../observe/statistics/attached.js'
import type { Recorder } from '../observe/statistics/recorder.js'
import type { Statistics } from '../observe/statistics/statistics.js'
import type { DecidedPolicy, Policy } from '../policy/policies.js'
import { memoryStore } from '../store/memory/memory-store.js'
import { type Action, type Stage, toStage } from '../store/stage.js'
import type { Store } from '../store/store.js'
import { type Clock, systemClock, systemTimers, type Timers } from '../time/clock.js'
import { PendingDecision } from './pending-decision.js'
import { createPlaces } from './places.js'
import { createRefunds, type RefundOptions } from './refunds.js'
import { createTurns, type Turns } from './turns.js'

/** A resolved request: the question to ask, and what its decision says beside the answer. */
export interface Resolved {
  readonly question: Question
  readonly policy: Policy | DecidedPolicy
  readonly cost: number
  /** Called with the answer to a charging question, before the caller gets it. */
  readonly onAnswer?: (question: Question, answer: Answer) => void
  /** Decides in place of the store. */
  readonly decideHere?: ((action: Action) => Decision) | null
}

/** How a kind of request is resolved: the `check` of a limiter, the `request` of a gate. */
export interface Way<First, Second> {
  /**
   * Returns the policy that decides one unit of one limit without resolving it; null or undefined if the request
   * has to be resolved.
   */
  single(first: First, second: Second): SingleLimitPolicy | null | undefined
  /** Returns the subject that asks for that unit. */
  subjectOf(first: First): string
  /** Resolves a request; throws for the caller's mistakes. */
  resolve(first: First, second: Second): Resolved
}

/** The same decision in three forms: as a promise, synchronously where possible, and without a charge. */
export interface Decisions<First, Second> {
  check(first: First, second: Second): Promise<Decision>
  checkNow(first: First, second: Second): Decision | Promise<Decision>
  peek(first: First, second: Second): Promise<Decision>
}

export interface FrontDoor {
  readonly store: Store
  readonly stage: Stage
  readonly context: DecisionContext
  /** Where decisions are counted; null if they are not. */
  readonly recorder: Recorder | null
  readonly statistics: Statistics | undefined
  through<First, Second>(way: Way<First, Second>): Decisions<First, Second>
  /** Asks a resolved request. */
  ask(action: Action, resolved: Resolved): Decision | Promise<Decision>
  /** The queue of callers who prefer waiting to a denial. */
  readonly turns: Turns
  refund(decision: Decision, units?: number | RefundOptions): Promise<number>
  settle(decision: Decision, actual: number): Promise<void>
  /** Decides a request about which nothing could be asked. */
  decideFault(mode: Exclude<FailureMode, 'local'>): Decision
  refuseClosed(): void
  /** Whether the store is closed for a settlement; warns of the first that comes too late. */
  isTooLate(): boolean
  /** Closes the store, once. Returns whether this was the first call. */
  close(): Promise<boolean>
}

export interface FrontDoorOptions {
  readonly store?: Store | undefined
  readonly clock?: Clock | undefined
  /** Default: those of the store. */
  readonly statistics?: Statistics | undefined
  readonly timers?: Timers | undefined
  readonly emit: Emit<DecisionEvent> | null
  readonly logger: Logger
}

export function createFrontDoor(options: FrontDoorOptions): FrontDoor {
  const { emit } = options
  const store = storeOf(options)
  const stage = toStage(store)
  const clock = store.clock ?? options.clock ?? systemClock
  const timers = options.timers ?? systemTimers
  const places = createPlaces(stage, { clock, timers, onFreed: freed => turns.freed(freed) })
  const statistics = options.statistics ?? store.statistics
  const recorder = recorderOf(statistics)
  const context = { clock, source: store.source, places, isCounted: recorder !== null }
  const { refund, settle } = createRefunds(stage, isTooLate)
  // They wait in real time, whatever clock the store uses.
  const turns = createTurns({ clock: systemClock, timers, refund, isShared: store.source !== 'memory' })
  let closed = false
  let isWarned = false

  function refuseClosed(): void {
    if (!closed) return
    throw new HeadgateError('ERR_HEADGATE_CLOSED', {
      field: 'limiter',
      expected: 'an open limiter',
      got: 'a closed one',
    })
  }

  /** What is in this process is gone with the store, and nobody misses a settlement. */
  function isTooLate(): boolean {
    if (closed && !isWarned && stage.source !== 'memory') {
      isWarned = true
      options.logger.warn(
        { code: SETTLED_AFTER_CLOSE },
        `${SETTLED_AFTER_CLOSE}: ${SETTLED_AFTER_CLOSE_TEXT}`,
      )
    }
    return closed
  }

  function ask(action: Action, resolved: Resolved): Decision | Promise<Decision> {
    const { question, policy, cost, onAnswer, decideHere } = resolved
    if (decideHere) return decideHere(action)
    const [listener, counted] = action === 'decide' ? [onAnswer ?? null, recorder] : [null, null]
    const decision = new PendingDecision(question, policy, cost, context, listener, counted)
    return decision.on(asksNothing(question) ? NOBODY_ASKED : stage.ask(action, question, decision))
  }

  function through<First, Second>(way: Way<First, Second>): Decisions<First, Second> {
    function resolveNow(action: Action, first: First, second: Second): Decision | Promise<Decision> {
      refuseClosed()
      return ask(action, way.resolve(first, second))
    }

    /** Not an async function, so that a decision costs only one promise. */
    function resolveLater(action: Action, first: First, second: Second): Promise<Decision> {
      try {
        return Promise.resolve(resolveNow(action, first, second))
      } catch (error) {
        return Promise.reject(error)
      }
    }

    function check(first: First, second: Second): Promise<Decision> {
      try {
        const decision = closed ? null : way.single(first, second)?.check(way.subjectOf(first))
        if (decision) return decision
      } catch (error) {
        return Promise.reject(error)
      }
      return resolveLater('decide', first, second)
    }

    function checkNow(first: First, second: Second): Decision | Promise<Decision> {
      const decision = closed ? null : way.single(first, second)?.checkNow(way.subjectOf(first))
      return decision || resolveNow('decide', first, second)
    }

    return {
      check: emitting(check, emit),
      checkNow: emitting(checkNow, emit),
      peek: (first, second) => resolveLater('peek', first, second),
    }
  }

  return {
    store,
    stage,
    context,
    recorder,
    statistics,
    through,
    ask,
    turns,
    async refund(decision, units) {
      refuseClosed()
      return refund(decision, units)
    },
    settle,
    decideFault: emitting((mode: Exclude<FailureMode, 'local'>) => undecided(mode, context, recorder), emit),
    refuseClosed,
    isTooLate,
    async close() {
      if (closed) return false
      closed = true
      await Promise.all([places.close(), stage.close()])
      return true
    },
  }
}

const SETTLED_AFTER_CLOSE = 'WARN_HEADGATE_SETTLED_AFTER_CLOSE'
const SETTLED_AFTER_CLOSE_TEXT =
  'settle: a request was settled after close(), so its estimate stands; let requests end before you close'

function storeOf({ store, clock }: FrontDoorOptions): Store {
  if (store === undefined) return memoryStore(clock === undefined ? {} : { clock })
  if (typeof store?.decide === 'function') return store
  const expected = 'what memoryStore() or redisStore() returns'
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'store', expected, store)
}

const NOBODY_ASKED: Answer = { charged: 0, verdicts: [[]], shadow: [], source: 'none' }

/** Whether nothing limits the request, so that nobody is asked. */
function asksNothing(question: Question): boolean {
  if (onlyCheckOf(question) !== null) return false
  const { alternatives, shadow } = question
  return shadow.length === 0 && alternatives.some(checks => checks.length === 0)
}
