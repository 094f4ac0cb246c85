import { hasSameNumbers } from '../../engine/limit.js'
import type { Check } from '../../engine/question.js'

/** Whether two checks are about one state. */
export function isSameState(one: Check, other: Check): boolean {
  return one.subject === other.subject && one.name === other.name && one.scope === other.scope
}

/** Whether they also hold it to the same numbers. */
export function isSameLimit(one: Check, other: Check): boolean {
  return isSameState(one, other) && (one.limit === other.limit || hasSameNumbers(one.limit, other.limit))
}
