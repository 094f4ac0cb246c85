/**
 * Limits that are not in the policy file: protocols such as Envoy's bring their own. They are decided like all
 * others, under the same switches, by the same store.
 */

import type { Limit } from '../algorithms/algorithm.js'
import { decideOn } from '../decision/decide-on.js'
import type { Decision, DecisionContext } from '../decision/decision.js'
import { type LimitVerdict, toLimitVerdict } from '../decision/verdicts.js'
import type { Answer, Check, FailureMode, Question, Refund } from '../engine/question.js'
import { makeQuestion } from '../engine/single-question.js'
import { unexpected } from '../errors/headgate-error.js'
import { parseCost, parseScope } from '../limiter/ask.js'
import { type DecisionEvent, decisionEvent } from '../observe/event.js'
import { scaleLimit } from '../policy/change-numbers.js'
import type { Control } from '../policy/control.js'
import type { DecidedPolicy } from '../policy/policies.js'
import { promiseAnswer, type Stage } from '../store/stage.js'
import type { SubjectInput, SubjectNamer } from '../subject/subject.js'

/** A limit and the subject it is for. */
export interface GivenLimit {
  readonly subject: SubjectInput
  /** Names the state together with the limit's id; up to 32 letters, digits, - or _. */
  readonly policy: string
  readonly limit: Limit
  readonly scope?: string
  /** The cost. Default 1. */
  readonly cost?: number
}

export interface GivenLimits {
  /** The first alternative whose limits all have room is charged, as a whole. */
  readonly alternatives: readonly (readonly GivenLimit[])[]
  /** Charged if they have room, whatever becomes of the request; they never bind. */
  readonly shadow?: readonly GivenLimit[]
}

export interface GivenLimitsAnswer {
  /** The decision. */
  readonly decision: Decision
  /** The index of the charged alternative; −1 if none was. */
  readonly charged: number
  /** The verdicts of the alternatives looked at, in order. Null for a limit that the switches let pass. */
  readonly verdicts: readonly (readonly (LimitVerdict | null)[])[]
  readonly shadow: readonly (LimitVerdict | null)[]
}

export interface GivenLimitDecider {
  /** Decides limits that are not in the file, under its switches. A denial is an answer, never an error. */
  checkLimits(given: GivenLimits): Promise<GivenLimitsAnswer>
  /**
   * Refunds units of such limits, the oldest first. Returns how many came back of each: 0 while the store is away.
   */
  refundLimits(limits: readonly GivenLimit[]): Promise<readonly number[]>
}

/** The switches and modes that currently apply to all of them. */
interface GivenLimitsContext {
  readonly nameSubject: SubjectNamer
  readonly control: Control
  readonly onStoreFailure: FailureMode | undefined
  readonly decision: DecisionContext
}

const POLICY = /^[A-Za-z0-9_-]{1,32}$/
const NOTHING_ASKED: Answer = { charged: 0, verdicts: [[]], shadow: [] }
/** Stores identify a limit by its object, so each is scaled once per multiplier. */
const scaledLimits = new WeakMap<Limit, { readonly factor: number; readonly limit: Limit }>()

/** `contextNow` throws if the gate is closed. */
export function createGivenLimits(
  stage: Stage,
  emit: ((event: DecisionEvent) => void) | null,
  contextNow: () => GivenLimitsContext,
): GivenLimitDecider {
  return {
    async checkLimits(given) {
      const { question, answer } = askGivenLimits(given, contextNow())
      const answered = answer(question === null ? null : await promiseAnswer(stage, 'decide', question))
      emit?.(decisionEvent(answered.decision))
      return answered
    },
    async refundLimits(limits) {
      return stage.refund(refundsOf(limits, contextNow()))
    },
  }
}

/** A question about given limits, and how to read its answer. */
interface GivenQuestion {
  /** Null if the switches leave nothing to ask. */
  readonly question: Question | null
  answer(answer: Answer | null): GivenLimitsAnswer
}

function askGivenLimits(given: GivenLimits, context: GivenLimitsContext): GivenQuestion {
  const { control, onStoreFailure } = context
  const alternatives = given.alternatives.map(limits => limits.map(one => checkOf(one, context)))
  const shadow = (given.shadow ?? []).map(one => checkOf(one, context))
  const asked = alternatives.map(checks => checks.filter(isAsked(control)))
  const watched = shadow.filter(isAsked(control))
  const isNothing = watched.length === 0 && asked.some(checks => checks.length === 0)
  const question = isNothing ? null : makeQuestion(asked, watched, onStoreFailure)
  const policy = decidedPolicy(given, control)
  const cost = Math.max(0, ...alternatives.flat().map(check => check.cost))
  return {
    question,
    answer(answered) {
      const answer = answered ?? NOTHING_ASKED
      const verdictsOf = (checks: readonly Check[], found: Answer['shadow']) => {
        let index = 0
        return checks.map(check => {
          const verdict = isAsked(control)(check) ? found[index++] : undefined
          return verdict === undefined ? null : toLimitVerdict(check, verdict)
        })
      }
      const looked = answered === null ? 1 : answer.verdicts.length
      return {
        decision: decideOn(question ?? NO_QUESTION, answer, policy, cost, context.decision),
        charged: answer.charged,
        verdicts: alternatives
          .slice(0, looked)
          .map((checks, index) => verdictsOf(checks, answer.verdicts[index] ?? [])),
        shadow: verdictsOf(shadow, answer.shadow),
      }
    },
  }
}

const NO_QUESTION: Question = { alternatives: [[]], shadow: [] }

/** Returns refunds of whatever the limits have counted, the oldest first. */
function refundsOf(limits: readonly GivenLimit[], context: GivenLimitsContext): readonly Refund[] {
  return limits.map(one => {
    const check = checkOf(one, context)
    return { check, units: check.cost, chargedAtUs: null }
  })
}

function checkOf(given: GivenLimit, { nameSubject, control }: GivenLimitsContext): Check {
  const { subject, policy, limit, scope, cost } = given
  if (!POLICY.test(policy)) {
    throw unexpected('ERR_HEADGATE_INVALID_POLICY', 'policy', 'up to 32 letters, digits, - or _', policy)
  }
  return {
    subject: nameSubject(subject),
    scope: parseScope(scope),
    name: `${policy}.${limit.id}`,
    limit: scaled(limit, control.multiplier),
    cost: cost === undefined ? 1 : parseCost(cost),
  }
}

/** While paused only bans are asked. */
function isAsked({ enabled, multiplier }: Control): (check: Check) => boolean {
  return ({ limit }) => enabled && (multiplier > 0 || limit.limit === 0)
}

function scaled(limit: Limit, factor: number): Limit {
  if (factor === 1 || factor === 0) return limit
  const known = scaledLimits.get(limit)
  if (known?.factor === factor) return known.limit
  const made = scaleLimit(limit, factor)
  scaledLimits.set(limit, { factor, limit: made })
  return made
}

function decidedPolicy({ alternatives, shadow = [] }: GivenLimits, control: Control): DecidedPolicy {
  const binding = alternatives.flat()
  const unasked = !control.enabled ? 'disabled' : control.multiplier === 0 ? 'paused' : null
  const onlyShadow = binding.length === 0 && shadow.length > 0 ? 'shadow' : null
  const name = (binding[0] ?? shadow[0])?.policy ?? ''
  return {
    name,
    limits: [],
    tier: null,
    rule: null,
    unasked: unasked ?? onlyShadow,
    headers: null,
    refundIf: null,
  }
}
