/**
 * A question of one check and its answer, as one object each. Most requests are limited by one limit at a time, and
 * the lists that several need would take longer to make than the arithmetic does. They are made when somebody looks.
 */
import { keepShape } from './keep-shape.js'
import type { Limit } from './limit.js'
import type { Answer, Check, Question, Verdict } from './question.js'

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
  // Declared only: an initialiser would write every field twice.
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

/** From units this process had taken in advance. */
export class LeasedAnswer extends SingleAnswer {
  get leased(): boolean {
    return true
  }
}

/** Stands where a shape needs some limit. */
export const NO_LIMIT = { algorithm: 'token-bucket', limit: 0 } as Limit
keepShape(new SingleQuestion('', '', '', NO_LIMIT, 1))
keepShape(new SingleAnswer(0, 0, 0.5, 0.5, 0.5))
keepShape(new SingleAnswer(0, 0.5, 0.5, null, 0.5))
keepShape(new SingleAnswer(0, 0, 0.5, 0.5, undefined))
keepShape(new LeasedAnswer(0, 0, 0.5, 0.5, undefined))
