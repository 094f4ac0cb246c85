/**
 * Denials that the store gave, remembered in this process: a flood from one client costs one call a second.
 * `known-denial.ts` says what a denial means for later questions. Numbers are compared; a reset or refund in this process is
 * seen at once, one elsewhere within the second after which the store is asked again.
 *
 * The fast path keeps denials too (`fast-path/kept-denials.ts`), and for another reason: here it is known without asking that a
 * request is denied; there the decision that was made of a denial is given again.
 *
 * Invariant: a denial from here is one the store would have given, had it been asked.
 */

import type { Limit } from '../../algorithms/algorithm.js'
import type { Answer, Check, Question } from '../../engine/question.js'
import { onlyCheckOf, SingleQuestion } from '../../engine/single-question.js'
import { KeptDenial } from '../../fast-path/kept-denials.js'
import { slotSubject } from '../../subject/ip-network.js'
import { isNameOnly } from '../../subject/subject.js'
import type { Clock } from '../../time/clock.js'
import { BoundedMap } from '../bounded-map.js'
import type { Action, Stage } from '../stage.js'
import type { Eventually } from '../store.js'
import type { Waiter } from '../waiter.js'
import { type CompareCosts, deniedSubjectOf, endsAnyTime, KnownDenial } from './known-denial.js'

export interface DenyCacheOptions {
  readonly clock: Clock
  /** How many subjects' denials are remembered; beyond that, those that did not ask lately are forgotten. */
  readonly maxSubjects: number
}

/** Questions remembered for a subject: different limits, or different costs. */
const MAX_DENIALS = 8

export function withDenyCache(next: Stage, options: DenyCacheOptions): Stage {
  const { clock, maxSubjects } = options
  const denials = new BoundedMap<KnownDenial[]>(maxSubjects)
  /** When a denial of a subject may last have ended early: what was asked before that is not remembered. */
  const unsettled = new Map<string, number>()
  let epochs = 0
  /** Like `unsettled`, for all subjects, because that map is bounded. */
  let forgottenBefore = 0

  function askUnlessKnown(action: Action, question: Question, waiter: Waiter<Answer>): Answer | null {
    if (action === 'peek') return next.ask(action, question, waiter)
    const subject = denials.size === 0 ? null : deniedSubjectOf(question)
    const known = subject === null ? undefined : denials.get(subject)
    const nowUs = clock.nowUs()
    const denial = known === undefined ? undefined : find(known, question, nowUs)
    if (denial !== undefined) return denial.answerAt(nowUs)
    return next.ask(action, question, new DenialRecorder(question, nowUs, epochs, waiter))
  }

  /** For one unit of one limit, mostly without creating a question. */
  function knownDenial(subject: string, name: string, limit: Limit): KeptDenial | null {
    const known = denials.size === 0 || isNameOnly(subject) ? undefined : denials.get(subject)
    if (known === undefined) return null
    const nowUs = clock.nowUs()
    for (const { given, question } of known) {
      if (given?.answers(limit, nowUs) && onlyCheckOf(question)?.name === name) return given
    }
    const denial = find(known, new SingleQuestion(subject, 'global', name, limit, 1), nowUs)
    if (denial === undefined) return null
    denial.given = new KeptDenial(denial.onlyAnswerAt(nowUs), limit, nowUs, denial.untilUs)
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
    const subject = deniedSubjectOf(question)
    if (subject === null || (unsettled.get(subject) ?? forgottenBefore) > epoch) return
    const denial = new KnownDenial(question, answer, sentAtUs)
    const nowUs = clock.nowUs()
    if (denial.untilUs <= nowUs) return
    const others = (denials.get(subject) ?? []).filter(
      one => one.untilUs > nowUs && !one.covers(question, isEqual),
    )
    if (others.length === MAX_DENIALS) others.shift()
    denials.set(subject, [...others, denial])
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
function find(known: readonly KnownDenial[], question: Question, nowUs: number): KnownDenial | undefined {
  const same = known.find(one => one.untilUs > nowUs && one.covers(question, isEqual))
  if (same !== undefined || known.length < MAX_DENIALS) return same
  return known.find(one => one.untilUs > nowUs && one.covers(question, isAtMost))
}

const isEqual: CompareCosts = (known, asked) => known === asked
const isAtMost: CompareCosts = (known, asked) => known <= asked
