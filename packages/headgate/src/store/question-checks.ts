/** The checks of a question, and whether two of them are about the same state. */

import { hasSameNumbers } from '../engine/limit.js'
import type { Check, Question } from '../engine/question.js'
import { SingleQuestion } from '../fast-path/single-question.js'
import { slotSubject } from '../subject/ip-network.js'

/** Returns the check of a question that has only one. */
export function singleCheckOf(question: Question): Check | null {
  if (question instanceof SingleQuestion) return question
  const [first] = question.alternatives
  const isSingle = question.alternatives.length === 1 && first?.length === 1 && question.shadow.length === 0
  return isSingle ? (first[0] as Check) : null
}

/** Returns the first check: on a cluster all checks of a call are on the same node. */
export function firstCheckOf(question: Question): Check | undefined {
  if (question instanceof SingleQuestion) return question
  const { alternatives, shadow } = question
  return alternatives.find(checks => checks.length > 0)?.[0] ?? shadow[0]
}

/** Whether all its checks are about one subject, or about subjects in the same slot. */
export function isInOneSlot(question: Question): boolean {
  if (singleCheckOf(question) !== null) return true
  const subject = firstCheckOf(question)?.subject ?? ''
  const slot = slotSubject(subject)
  const isSame = (check: Check): boolean => check.subject === subject || slotSubject(check.subject) === slot
  return question.alternatives.every(checks => checks.every(isSame)) && question.shadow.every(isSame)
}

export function countChecks(question: Question): number {
  if (singleCheckOf(question) !== null) return 1
  return question.alternatives.reduce((sum, checks) => sum + checks.length, question.shadow.length)
}

/** Whether two checks are about one state. */
export function isSameState(one: Check, other: Check): boolean {
  return one.subject === other.subject && one.name === other.name && one.scope === other.scope
}

/** Whether they also have the same numbers. */
export function isSameLimit(one: Check, other: Check): boolean {
  return isSameState(one, other) && (one.limit === other.limit || hasSameNumbers(one.limit, other.limit))
}
