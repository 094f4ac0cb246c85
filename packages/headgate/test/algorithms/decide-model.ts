/** Several limits as one question, by the algorithms alone: what every store has to answer. */
import { type Limit, NOT_CHARGED, type Outcome } from '../../src/algorithms/algorithm.js'
import type { Check } from '../../src/check/check.js'
import type { Answer, Question, Verdict } from '../../src/store/ask-store.js'

type OpenState = (check: Check) => unknown

/** Answers the question at `nowUs` and charges what it admits. */
export function decide(question: Question, open: OpenState, nowUs: number): Answer {
  return answer(question, open, nowUs, true)
}

/** Answers as `decide` would and changes nothing. */
export function peek(question: Question, open: OpenState, nowUs: number): Answer {
  return answer(question, open, nowUs, false)
}

function answer(question: Question, open: OpenState, nowUs: number, mayCharge: boolean): Answer {
  const verdicts: Verdict[][] = []
  let charged = -1
  for (const checks of question.alternatives) {
    const looked = checks.map(check => verdictOf(check, open(check), nowUs, false))
    const fits = looked.every(({ allowed }) => allowed)
    if (fits) charged = verdicts.length
    verdicts.push(
      fits && mayCharge ? checks.map(check => verdictOf(check, open(check), nowUs, true)) : looked,
    )
    if (fits) break
  }
  const shadow = question.shadow.map(check => verdictOf(check, open(check), nowUs, mayCharge))
  return { charged, verdicts, shadow }
}

function verdictOf({ limit, cost }: Check, state: unknown, nowUs: number, mayCharge: boolean): Verdict {
  const out: Outcome = { waitUs: 0, remaining: 0, resetAfterUs: 0, chargedAtUs: NOT_CHARGED }
  const { algorithm }: Limit = limit
  algorithm.decide(limit, state, cost, nowUs, mayCharge, out)
  return {
    allowed: out.waitUs === 0,
    remaining: out.remaining,
    retryAfterUs: out.waitUs,
    resetAfterUs: out.resetAfterUs,
    chargedAtUs: out.chargedAtUs === NOT_CHARGED ? null : out.chargedAtUs,
  }
}
