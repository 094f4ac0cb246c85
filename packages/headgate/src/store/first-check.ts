import type { Check, Question } from '../engine/question.js'

/** The first check there is: on a cluster all checks of a question that is asked at once are where this one is. */
export function firstCheckOf({ alternatives, shadow }: Question): Check | undefined {
  return alternatives.find(checks => checks.length > 0)?.[0] ?? shadow[0]
}
