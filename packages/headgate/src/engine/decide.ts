/**
 * Several limits are one question: every check of an alternative is charged, or none of them.
 * A denied request leaves no trace, so a client that hammers does not dig itself deeper.
 */

import type { Limit } from '../algorithms/algorithm.js'
import type { Algorithm } from './legacy-algorithm.js'
import { algorithmOf, type State } from './legacy-algorithm.js'
import type { Answer, Check, Question, Verdict } from './question.js'
import { SingleAnswer } from './single-question.js'

/** Opens the state of a check. Charges to it must be there when it is opened again. */
export type OpenState = (check: Check) => State

type AnyAlgorithm = Algorithm<Limit, State>

/** A check with its open state and its wait. */
interface Entry {
  readonly check: Check
  readonly algorithm: AnyAlgorithm
  readonly state: State
  readonly waitUs: number
}

const NO_VERDICTS: readonly Verdict[] = []

/** Answers the question at `nowUs` and charges what it admits. */
export function decide(question: Question, open: OpenState, nowUs: number): Answer {
  const verdicts: (readonly Verdict[])[] = []
  let charged = -1
  for (const checks of question.alternatives) {
    const entries = openAll(checks, open, nowUs)
    if (allFit(entries)) {
      charged = verdicts.length
      verdicts.push(chargeAll(entries, nowUs))
      break
    }
    verdicts.push(lookAtAll(entries, nowUs))
  }
  return { charged, verdicts, shadow: decideShadow(question.shadow, open, nowUs), nowUs }
}

/** Answers as `decide` would and changes nothing: remaining and reset are those before the charge. */
export function peek(question: Question, open: OpenState, nowUs: number): Answer {
  const verdicts: (readonly Verdict[])[] = []
  let charged = -1
  for (const checks of question.alternatives) {
    const entries = openAll(checks, open, nowUs)
    verdicts.push(lookAtAll(entries, nowUs))
    if (allFit(entries)) {
      charged = verdicts.length - 1
      break
    }
  }
  return { charged, verdicts, shadow: lookAtAll(openAll(question.shadow, open, nowUs), nowUs), nowUs }
}

// Loops instead of map and every: this runs for each request, and the closures were a tenth of its time.

function openAll(checks: readonly Check[], open: OpenState, nowUs: number): Entry[] {
  const entries: Entry[] = []
  for (const check of checks) entries.push(openOne(check, open, nowUs))
  return entries
}

function allFit(entries: readonly Entry[]): boolean {
  for (const entry of entries) if (entry.waitUs > 0) return false
  return true
}

function chargeAll(entries: readonly Entry[], nowUs: number): Verdict[] {
  const verdicts: Verdict[] = []
  for (const { check, algorithm, state } of entries) verdicts.push(chargeOne(check, algorithm, state, nowUs))
  return verdicts
}

function lookAtAll(entries: readonly Entry[], nowUs: number): Verdict[] {
  const verdicts: Verdict[] = []
  for (const { check, algorithm, state, waitUs } of entries) {
    verdicts.push(lookAt(check, algorithm, state, waitUs, nowUs))
  }
  return verdicts
}

function decideShadow(checks: readonly Check[], open: OpenState, nowUs: number): readonly Verdict[] {
  if (checks.length === 0) return NO_VERDICTS
  // One after the other, so that two shadow checks on one state see each other's charge.
  return checks.map(check => {
    const { algorithm, state, waitUs } = openOne(check, open, nowUs)
    if (waitUs === 0) return chargeOne(check, algorithm, state, nowUs)
    return lookAt(check, algorithm, state, waitUs, nowUs)
  })
}

function openOne(check: Check, open: OpenState, nowUs: number): Entry {
  const algorithm = algorithmOf(check.limit)
  const state = open(check)
  return { check, algorithm, state, waitUs: algorithm.waitUs(check.limit, state, check.cost, nowUs) }
}

function chargeOne(check: Check, algorithm: AnyAlgorithm, state: State, nowUs: number): Verdict {
  const chargedAtUs = check.cost === 0 ? null : algorithm.charge(check.limit, state, check.cost, nowUs)
  return {
    allowed: true,
    remaining: algorithm.remaining(check.limit, state, nowUs),
    retryAfterUs: 0,
    resetAfterUs: algorithm.resetAfterUs(check.limit, state, nowUs),
    chargedAtUs,
  }
}

function lookAt(check: Check, algorithm: AnyAlgorithm, state: State, waitUs: number, nowUs: number): Verdict {
  return {
    allowed: waitUs === 0,
    remaining: algorithm.remaining(check.limit, state, nowUs),
    retryAfterUs: waitUs,
    resetAfterUs: algorithm.resetAfterUs(check.limit, state, nowUs),
    chargedAtUs: null,
  }
}

/**
 * Answers for one check by itself: waits, charges, remaining and reset, each read from the state. `take` gives the same
 * answer in one pass where the cost fits; this one also denies, and it is right when the clock has stepped back.
 */
export function decideAlone(
  algorithm: AnyAlgorithm,
  limit: Limit,
  state: State,
  cost: number,
  nowUs: number,
): SingleAnswer {
  const waitUs = algorithm.waitUs(limit, state, cost, nowUs)
  // A cost of 0 asks whether anything is owed; there is nothing to write down.
  const chargedAtUs = waitUs > 0 || cost === 0 ? null : algorithm.charge(limit, state, cost, nowUs)
  const remaining = algorithm.remaining(limit, state, nowUs)
  return new SingleAnswer(remaining, waitUs, algorithm.resetAfterUs(limit, state, nowUs), chargedAtUs, nowUs)
}
