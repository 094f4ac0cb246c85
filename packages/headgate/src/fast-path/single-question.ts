/**
 * A question of one check and its answer, as one object each. Most requests meet a single limit, and the lists that
 * several need would take longer to make than the arithmetic. They are made on access.
 */

import type { Algorithm } from '../engine/algorithm.js'
import type { State } from '../engine/algorithms.js'
import type { Limit } from '../engine/limit.js'
import type { Answer, Check, Question, Verdict } from '../engine/question.js'
import { keepV8Shape } from './keep-v8-shape.js'

const NO_CHECKS: readonly Check[] = []
const NO_VERDICTS: readonly Verdict[] = []

export class SingleQuestion implements Question, Check {
  constructor(
    readonly subject: string,
    readonly scope: string,
    readonly name: string,
    readonly limit: Limit,
    readonly cost: number,
  ) {}

  get alternatives(): readonly (readonly Check[])[] {
    return [[this]]
  }

  get shadow(): readonly Check[] {
    return NO_CHECKS
  }
}

export class SingleAnswer implements Answer, Verdict {
  // Declared only, because an initialiser would write every field twice.
  declare readonly remaining: number
  declare readonly retryAfterUs: number
  declare readonly resetAfterUs: number
  declare readonly chargedAtUs: number | null
  declare readonly nowUs: number | undefined

  constructor(
    remaining: number,
    retryAfterUs: number,
    resetAfterUs: number,
    chargedAtUs: number | null,
    nowUs: number | undefined,
  ) {
    this.remaining = remaining
    this.retryAfterUs = retryAfterUs
    this.resetAfterUs = resetAfterUs
    this.chargedAtUs = chargedAtUs
    this.nowUs = nowUs
  }

  get charged(): number {
    return this.retryAfterUs === 0 ? 0 : -1
  }

  get allowed(): boolean {
    return this.retryAfterUs === 0
  }

  get verdicts(): readonly (readonly Verdict[])[] {
    return [[this]]
  }

  get shadow(): readonly Verdict[] {
    return NO_VERDICTS
  }
}

/** From units leased by this process. */
export class LeasedAnswer extends SingleAnswer {
  get leased(): boolean {
    return true
  }
}

/** A placeholder where a shape needs some limit. */
export const NO_LIMIT = { algorithm: 'token-bucket', limit: 0 } as Limit
keepV8Shape(new SingleQuestion('', '', '', NO_LIMIT, 1))
keepV8Shape(new SingleAnswer(0, 0, 0.5, 0.5, 0.5))
keepV8Shape(new SingleAnswer(0, 0.5, 0.5, null, 0.5))
keepV8Shape(new SingleAnswer(0, 0, 0.5, 0.5, undefined))
keepV8Shape(new LeasedAnswer(0, 0, 0.5, 0.5, undefined))

/**
 * Answers for one check by itself: wait, charge, remaining and reset, each read from the state. `take` gives the
 * same answer in one pass if the cost fits; this one also denies, and handles a clock that stepped back.
 */
export function decideAlone(
  algorithm: Algorithm<Limit, State>,
  limit: Limit,
  state: State,
  cost: number,
  nowUs: number,
): SingleAnswer {
  const waitUs = algorithm.waitUs(limit, state, cost, nowUs)
  // A cost of 0 asks whether anything is owed, so there is nothing to record.
  const chargedAtUs = waitUs > 0 || cost === 0 ? null : algorithm.charge(limit, state, cost, nowUs)
  const remaining = algorithm.remaining(limit, state, nowUs)
  return new SingleAnswer(remaining, waitUs, algorithm.resetAfterUs(limit, state, nowUs), chargedAtUs, nowUs)
}
