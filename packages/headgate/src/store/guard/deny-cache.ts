/**
 * Denials the store confirmed, remembered in this process: a flood from one client costs one call a second.
 *
 * A wait is worked out "if nobody else asks", and what others take only makes it longer. So until it is over every
 * request that takes as much or more from the same limits is denied, by any of the algorithms. Only a reset, a refund or
 * other numbers can end it sooner. Only a denial for want of a place says nothing about the next moment, and is not
 * remembered. Numbers are compared; a reset or refund in this process is seen at once; one
 * elsewhere within the second after which the store is asked again.
 *
 * Invariant: a denial from here is one the store would have given, had it been asked.
 */

import { type Limit, NEVER } from '../../engine/limit.js'
import type { Answer, Check, Question, Verdict } from '../../engine/question.js'
import { KeptDenial } from '../../fast-path/kept-denial.js'
import { SingleAnswer, SingleQuestion } from '../../fast-path/single-question.js'
import { slotSubject } from '../../subject/ip-network.js'
import { isNameOnly } from '../../subject/subject.js'
import type { Clock } from '../../time/clock.js'
import { BoundedMap } from '../bounded-map.js'
import { isSameLimit } from '../question-checks.js'
import type { Action, Stage } from '../stage.js'
import type { Eventually } from '../store.js'
import type { Waiter } from '../waiter.js'

export interface DenyCacheOptions {
  readonly clock: Clock
  /** How many subjects' denials are remembered; beyond that, those that did not ask lately are forgotten. */
  readonly maxSubjects: number
}

/** How long a denial counts, from when the question was sent. */
const MOST_US = 1_000_000
/** Questions remembered per subject: different limits, or different costs. */
const MAX_DENIALS = 8

interface Known {
  readonly question: Question
  readonly answer: Answer
  readonly sentAtUs: number
  readonly untilUs: number
  /** The form last given to a caller that asked for one unit of one limit. */
  given: KeptDenial | null
}

export function withDenyCache(next: Stage, options: DenyCacheOptions): Stage {
  const { clock, maxSubjects } = options
  const denials = new BoundedMap<Known[]>(maxSubjects)
  /** When a denial of a subject may last have ended early: answers to earlier questions are not remembered. */
  const unsettled = new Map<string, number>()
  let epochs = 0
  /** Like `unsettled`, for all subjects, because that map is bounded. */
  let forgottenBefore = 0

  function askUnlessKnown(action: Action, question: Question, waiter: Waiter<Answer>): Answer | null {
    if (action === 'peek') return next.ask(action, question, waiter)
    const subject = denials.size === 0 ? null : subjectOf(question)
    const known = subject === null ? undefined : denials.get(subject)
    const nowUs = clock.nowUs()
    const denial = known === undefined ? undefined : find(known, question, nowUs)
    if (denial !== undefined) return laterBy(nowUs - denial.sentAtUs, denial.answer, question)
    return next.ask(action, question, new DenialRecorder(question, nowUs, epochs, waiter))
  }

  /** For one unit of one limit, mostly without creating a question. */
  function knownDenial(subject: string, name: string, limit: Limit): KeptDenial | null {
    const known = denials.size === 0 || isNameOnly(subject) ? undefined : denials.get(subject)
    if (known === undefined) return null
    const nowUs = clock.nowUs()
    for (const { given, question } of known) {
      const isSame = question instanceof SingleQuestion && question.name === name
      if (isSame && given?.answers(limit, nowUs)) return given
    }
    const question = new SingleQuestion(subject, 'global', name, limit, 1)
    const denial = find(known, question, nowUs)
    if (denial === undefined) return null
    const answer = laterBy(nowUs - denial.sentAtUs, denial.answer, question)
    if (!(answer instanceof SingleAnswer)) return null
    denial.given = new KeptDenial(answer, limit, nowUs, denial.untilUs)
    return denial.given
  }

  /** Remembers what the store denied. Synchronous answers never came from the store. */
  class DenialRecorder implements Waiter<Answer> {
    constructor(
      readonly question: Question,
      readonly sentAtUs: number,
      readonly epoch: number,
      readonly waiter: Waiter<Answer>,
    ) {}

    answered(answer: Answer): void {
      if (answer.charged < 0 && answer.source === undefined && answer.leased !== true)
        remember(this.question, this.sentAtUs, answer, this.epoch)
      this.waiter.answered(answer)
    }

    failed(error: unknown): void {
      this.waiter.failed(error)
    }
  }

  function remember(question: Question, sentAtUs: number, answer: Answer, epoch: number): void {
    const subject = subjectOf(question)
    if (subject === null || (unsettled.get(subject) ?? forgottenBefore) > epoch) return
    const untilUs = sentAtUs + Math.min(MOST_US, waitUs(question, answer))
    const nowUs = clock.nowUs()
    if (untilUs <= nowUs) return
    const others = (denials.get(subject) ?? []).filter(
      one => one.untilUs > nowUs && !covers(one.question, question, isEqual),
    )
    if (others.length === MAX_DENIALS) others.shift()
    denials.set(subject, [...others, { question, answer, sentAtUs, untilUs, given: null }])
  }

  /** A question asked before this may have been decided before it, whenever the answer comes. */
  function forget(subjects: ReadonlySet<string>): void {
    epochs++
    if (unsettled.size + subjects.size > maxSubjects) {
      unsettled.clear()
      forgottenBefore = epochs
    }
    for (const subject of subjects) {
      denials.delete(subject)
      unsettled.set(subject, epochs)
    }
  }

  /**
   * Before, because it may be executed at any time from now; and after, because of what was learnt in the meantime.
   */
  async function ending<T>(checks: readonly Check[], work: () => Eventually<T>): Promise<T> {
    const lasting = checks.filter(check => !endsAnyTime(check))
    const subjects = new Set(lasting.map(({ subject }) => slotSubject(subject)))
    if (subjects.size === 0) return work()
    forget(subjects)
    try {
      return await work()
    } finally {
      forget(subjects)
    }
  }

  return {
    source: next.source,
    ask: askUnlessKnown,
    refund: refunds =>
      ending(
        refunds.map(({ check }) => check),
        () => next.refund(refunds),
      ),
    renew: next.renew,
    reset: checks => ending(checks, () => next.reset(checks)),
    close: next.close,
    oneUnit: (name, limit) => ({ take: subject => knownDenial(subject, name, limit) ?? false }),
  }
}

/**
 * Finds the denial of the same question. A denial of a lower cost would also apply, but not its duration: the store
 * is asked for that, unless a client keeps asking for ever different amounts. Then it is told the shorter wait.
 */
function find(known: readonly Known[], question: Question, nowUs: number): Known | undefined {
  const same = known.find(one => one.untilUs > nowUs && covers(one.question, question, isEqual))
  if (same !== undefined || known.length < MAX_DENIALS) return same
  return known.find(one => one.untilUs > nowUs && covers(one.question, question, isAtMost))
}

type CompareCosts = (known: number, asked: number) => boolean
const isEqual: CompareCosts = (known, asked) => known === asked
const isAtMost: CompareCosts = (known, asked) => known <= asked

/**
 * Returns the subject whose denial an answer to this question would be; null if it would say nothing about a later
 * one.
 */
function subjectOf(question: Question): string | null {
  if (question instanceof SingleQuestion) return slotSubject(question.subject)
  if (question.shadow.length > 0) return null
  const subject = question.alternatives[0]?.[0]?.subject
  if (subject === undefined) return null
  // By the slot: a refund for one IPv6 caller may end the denial of another in its network.
  const first = slotSubject(subject)
  const isSame = (check: Check): boolean => check.subject === subject || slotSubject(check.subject) === first
  return question.alternatives.every(checks => checks.length > 0 && checks.every(isSame)) ? first : null
}

/** Whether a denial of `known` is a denial of `asked`: the same limits, for as much. */
function covers(known: Question, asked: Question, costs: CompareCosts): boolean {
  if (known instanceof SingleQuestion && asked instanceof SingleQuestion)
    return coversCheck(known, asked, costs)
  const [ours, theirs] = [known.alternatives, asked.alternatives]
  return (
    asked.shadow.length === 0 &&
    ours.length === theirs.length &&
    ours.every((checks, index) => {
      const others = theirs[index] as readonly Check[]
      return (
        checks.length === others.length &&
        checks.every((check, position) => coversCheck(check, others[position] as Check, costs))
      )
    })
  )
}

function coversCheck(known: Check, asked: Check, costs: CompareCosts): boolean {
  return costs(known.cost, asked.cost) && isSameLimit(known, asked)
}

/** Until every check of some alternative has room. */
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

/** A place is freed whenever its holder is done. */
function endsAnyTime(check: Check | undefined): boolean {
  return check?.limit.algorithm === 'concurrency'
}

/** Returns the same answer with part of the wait elapsed. */
function laterBy(passedUs: number, answer: Answer, question: Question): Answer {
  if (answer instanceof SingleAnswer && question instanceof SingleQuestion) {
    const { remaining, retryAfterUs, resetAfterUs } = answer
    return new SingleAnswer(
      remaining,
      retryAfterUs - passedUs,
      Math.max(0, resetAfterUs - passedUs),
      null,
      undefined,
    )
  }
  const later = (verdict: Verdict): Verdict => {
    const retryAfterUs = Math.max(0, verdict.retryAfterUs - passedUs)
    const resetAfterUs = Math.max(0, verdict.resetAfterUs - passedUs)
    return { ...verdict, allowed: retryAfterUs === 0, retryAfterUs, resetAfterUs, chargedAtUs: null }
  }
  return { charged: -1, verdicts: answer.verdicts.map(verdicts => verdicts.map(later)), shadow: [] }
}
