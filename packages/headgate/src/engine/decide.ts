/**
 * Several limits are one question: every check of an alternative is charged, or none of them.
 * A denied request leaves no trace, so a client that hammers does not dig itself deeper.
 */
import type { Algorithm } from './algorithm.js'
import { algorithmOf, type State } from './algorithms.js'
import type { Limit } from './limit.js'
import type { Answer, Check, Question, Verdict } from './question.js'

/** Shows the state of a check. What is charged to it must be there when it is opened again. */
export type OpenState = (check: Check) => State

/** A check with its state open before it and the wait it was found to have. */
interface Entry {
  readonly check: Check
  readonly algorithm: Algorithm<Limit, State>
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
    const fits = allFit(entries)
    verdicts.push(entries.map(entry => (fits ? chargeOne(entry, nowUs) : lookAt(entry, nowUs))))
    if (fits) {
      charged = verdicts.length - 1
      break
    }
  }
  return { charged, verdicts, shadow: decideShadow(question.shadow, open, nowUs) }
}

/** Answers as `decide` would and changes nothing: remaining and reset are those before the charge. */
export function peek(question: Question, open: OpenState, nowUs: number): Answer {
  const verdicts: (readonly Verdict[])[] = []
  let charged = -1
  for (const checks of question.alternatives) {
    const entries = openAll(checks, open, nowUs)
    verdicts.push(entries.map(entry => lookAt(entry, nowUs)))
    if (allFit(entries)) {
      charged = verdicts.length - 1
      break
    }
  }
  return {
    charged,
    verdicts,
    shadow: openAll(question.shadow, open, nowUs).map(entry => lookAt(entry, nowUs)),
  }
}

function openOne(check: Check, open: OpenState, nowUs: number): Entry {
  const algorithm = algorithmOf(check.limit)
  const state = open(check)
  return { check, algorithm, state, waitUs: algorithm.waitUs(check.limit, state, check.cost, nowUs) }
}

function openAll(checks: readonly Check[], open: OpenState, nowUs: number): Entry[] {
  return checks.map(check => openOne(check, open, nowUs))
}

function allFit(entries: readonly Entry[]): boolean {
  return entries.every(entry => entry.waitUs === 0)
}

function decideShadow(checks: readonly Check[], open: OpenState, nowUs: number): readonly Verdict[] {
  if (checks.length === 0) return NO_VERDICTS
  // One after the other, so that two shadow checks on one state see each other's charge.
  return checks.map(check => {
    const entry = openOne(check, open, nowUs)
    return entry.waitUs === 0 ? chargeOne(entry, nowUs) : lookAt(entry, nowUs)
  })
}

function chargeOne(entry: Entry, nowUs: number): Verdict {
  const { check, algorithm, state } = entry
  // A cost of 0 asks whether anything is owed; there is nothing to write down.
  const chargedAtUs = check.cost === 0 ? null : algorithm.charge(check.limit, state, check.cost, nowUs)
  return {
    allowed: true,
    remaining: algorithm.remaining(check.limit, state, nowUs),
    retryAfterUs: 0,
    resetAfterUs: algorithm.resetAfterUs(check.limit, state, nowUs),
    chargedAtUs,
  }
}

function lookAt(entry: Entry, nowUs: number): Verdict {
  const { check, algorithm, state, waitUs } = entry
  return {
    allowed: waitUs === 0,
    remaining: algorithm.remaining(check.limit, state, nowUs),
    retryAfterUs: waitUs,
    resetAfterUs: algorithm.resetAfterUs(check.limit, state, nowUs),
    chargedAtUs: null,
  }
}
