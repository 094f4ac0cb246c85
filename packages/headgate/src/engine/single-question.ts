/**
 * A question of one check and its answer, as one object each. Most requests are limited by one limit at a time, and the
 * lists that several need would take longer to make than the arithmetic does: they are made when somebody looks.
 *
 * Nobody else has to know which kind of question it has. `makeQuestion` makes the right one of any checks, and the
 * functions below ask a question for its only check, its first, all of them or their number.
 */
import type { Answer, Check, FailureMode, Question, Verdict } from './question.js'

const NO_CHECKS: readonly Check[] = []
const NO_VERDICTS: readonly Verdict[] = []

export class SingleQuestion implements Question, Check {
  constructor(
    readonly subject: string,
    readonly scope: string,
    readonly name: string,
    readonly limit: Check['limit'],
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

/** The question of these checks. */
export function makeQuestion(
  alternatives: readonly (readonly Check[])[],
  shadow: readonly Check[],
  onStoreFailure?: FailureMode | null,
): Question {
  if (onStoreFailure) return { alternatives, shadow, onStoreFailure }
  const only = onlyOf(alternatives, shadow)
  if (only === null) return { alternatives, shadow }
  return new SingleQuestion(only.subject, only.scope, only.name, only.limit, only.cost)
}

function onlyOf(alternatives: readonly (readonly Check[])[], shadow: readonly Check[]): Check | null {
  const checks = alternatives[0]
  const isSingle = alternatives.length === 1 && checks?.length === 1 && shadow.length === 0
  return isSingle ? (checks[0] as Check) : null
}

/** Whether a question was made as one object: its answer is one, too. Others of one check are answered with lists. */
export function isSingle(question: Question): question is SingleQuestion {
  return question instanceof SingleQuestion
}

/** The check of a question that has only one; null for any other. */
export function onlyCheckOf(question: Question): Check | null {
  return isSingle(question) ? question : onlyOf(question.alternatives, question.shadow)
}

/** The first check there is: on a cluster all checks of a call are where this one is. */
export function firstCheckOf(question: Question): Check | undefined {
  const only = onlyCheckOf(question)
  if (only !== null) return only
  const { alternatives, shadow } = question
  return alternatives.find(checks => checks.length > 0)?.[0] ?? shadow[0]
}

export function countChecks(question: Question): number {
  if (onlyCheckOf(question) !== null) return 1
  return question.alternatives.reduce((sum, checks) => sum + checks.length, question.shadow.length)
}

/** Whether any check is such a one, of those that bind and of those that only watch. */
export function someCheck(question: Question, is: (check: Check) => boolean): boolean {
  const only = onlyCheckOf(question)
  if (only !== null) return is(only)
  for (const checks of question.alternatives) if (checks.some(is)) return true
  return question.shadow.some(is)
}

/** The same question with every check changed. */
export function mapChecks(question: Question, change: (check: Check) => Check): Question {
  const { alternatives, shadow, onStoreFailure } = question
  return makeQuestion(
    alternatives.map(checks => checks.map(change)),
    shadow.map(change),
    onStoreFailure,
  )
}

/** The verdict of an answer to one check; null for any other answer. */
export function onlyVerdictOf(answer: Answer): Verdict | null {
  return answer instanceof SingleAnswer ? answer : null
}
