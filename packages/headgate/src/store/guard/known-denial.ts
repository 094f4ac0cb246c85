/**
 * A denial that the store gave, and what it says about later questions.
 *
 * A wait is worked out "if nobody else asks", and what others take only makes it longer. So until it is over every
 * request that takes as much or more from the same limits is denied, by any of the algorithms. Only a reset, a refund or
 * other numbers can end it sooner. A denial for want of a place says nothing about the next moment.
 */
import { NEVER } from '../../algorithms/algorithm.js'
import { type Answer, type Check, isSameLimit, type Question, type Verdict } from '../../engine/question.js'
import { isSingle, onlyCheckOf, SingleAnswer } from '../../engine/single-question.js'
import type { KeptDenial } from '../../fast-path/kept-denials.js'
import { slotSubject } from '../../subject/ip-network.js'

/** A denial counts for this long, from when the question was sent. */
const MOST_US = 1_000_000

export class KnownDenial {
  readonly untilUs: number
  /** As it was last given to whoever asked for one unit of one limit. */
  given: KeptDenial | null = null

  constructor(
    readonly question: Question,
    readonly answer: Answer,
    readonly sentAtUs: number,
  ) {
    this.untilUs = sentAtUs + Math.min(MOST_US, waitUs(question, answer))
  }

  /** Whether it denies `asked`, too: the same limits, with costs that compare so. */
  covers(asked: Question, costs: CompareCosts): boolean {
    const [known, other] = [onlyCheckOf(this.question), onlyCheckOf(asked)]
    if (known !== null && other !== null) return coversCheck(known, other, costs)
    const [ours, theirs] = [this.question.alternatives, asked.alternatives]
    return (
      asked.shadow.length === 0 &&
      ours.length === theirs.length &&
      ours.every((checks, index) => coversAll(checks, theirs[index] as readonly Check[], costs))
    )
  }

  /** The answer when some of the wait is over. */
  answerAt(nowUs: number): Answer {
    if (isSingle(this.question)) return this.onlyAnswerAt(nowUs)
    const passedUs = nowUs - this.sentAtUs
    const verdicts = this.answer.verdicts.map(found => found.map(verdict => later(verdict, passedUs)))
    return { charged: -1, verdicts, shadow: [] }
  }

  /** The same for a question of one check. */
  onlyAnswerAt(nowUs: number): SingleAnswer {
    const [verdicts = []] = this.answer.verdicts
    const { remaining, retryAfterUs, resetAfterUs } = verdicts[0] as Verdict
    const passedUs = nowUs - this.sentAtUs
    const resetUs = Math.max(0, resetAfterUs - passedUs)
    return new SingleAnswer(remaining, retryAfterUs - passedUs, resetUs, null, undefined)
  }
}

/** How the cost that was denied has to compare to the one that is asked for. */
export type CompareCosts = (known: number, asked: number) => boolean

/** The subject whose denial an answer to this question would be; null where it would say nothing about a later one. */
export function deniedSubjectOf(question: Question): string | null {
  const only = onlyCheckOf(question)
  if (only !== null) return slotSubject(only.subject)
  if (question.shadow.length > 0) return null
  const subject = question.alternatives[0]?.[0]?.subject
  if (subject === undefined) return null
  // By the slot: what one IPv6 caller gives back may end the denial of another in its network.
  const first = slotSubject(subject)
  const isSame = (check: Check): boolean => check.subject === subject || slotSubject(check.subject) === first
  return question.alternatives.every(checks => checks.length > 0 && checks.every(isSame)) ? first : null
}

/** Whether a denial of it may end at any time: a place comes free when whoever holds it is done. */
export function endsAnyTime(check: Check | undefined): boolean {
  return check?.limit.algorithm.kind === 'permits'
}

function coversAll(known: readonly Check[], asked: readonly Check[], costs: CompareCosts): boolean {
  return (
    known.length === asked.length &&
    known.every((check, index) => coversCheck(check, asked[index] as Check, costs))
  )
}

function coversCheck(known: Check, asked: Check, costs: CompareCosts): boolean {
  return costs(known.cost, asked.cost) && isSameLimit(known, asked)
}

/** Until every check of one alternative has room, of whichever alternative that is first. */
function waitUs({ alternatives }: Question, answer: Answer): number {
  let least = NEVER
  for (const [index, verdicts] of answer.verdicts.entries()) {
    let longest = 0
    for (const [position, { retryAfterUs }] of verdicts.entries()) {
      if (!endsAnyTime(alternatives[index]?.[position])) longest = Math.max(longest, retryAfterUs)
    }
    least = Math.min(least, longest)
  }
  return least
}

function later(verdict: Verdict, passedUs: number): Verdict {
  const retryAfterUs = Math.max(0, verdict.retryAfterUs - passedUs)
  const resetAfterUs = Math.max(0, verdict.resetAfterUs - passedUs)
  return { ...verdict, allowed: retryAfterUs === 0, retryAfterUs, resetAfterUs, chargedAtUs: null }
}
