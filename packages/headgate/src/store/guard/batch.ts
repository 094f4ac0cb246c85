/**
 * Questions asked in the same turn of the event loop travel as one call. An interpreter that is entered once for sixty
 * checks, one reading of the server's clock and one packet cost a fraction of sixty. Nothing waits for a timer: a question
 * asked while nothing is under way leaves as soon as the code that asked it is done.
 *
 * Invariant: questions of one lane leave in the order they were asked.
 */

import type { Answer, Check, Question } from '../../engine/question.js'
import { countChecks, firstCheckOf } from '../../engine/single-question.js'
import { HeadgateError, isHeadgateError } from '../../errors/headgate-error.js'
import type { Timers } from '../../time/clock.js'
import type { Action, Stage } from '../stage.js'
import type { Eventually, Source } from '../store.js'
import { settle, type Waiter } from '../waiter.js'
import type { Breakers } from './breakers.js'
import type { Call, Send } from './call.js'
import type { Outcome, Remote } from './remote.js'

export interface BatchOptions {
  /** The most checks per call, so that no call holds the server up for long. */
  readonly maxChecks: number
  readonly timers: Timers
  /** A question to an unreachable node is refused at once, instead of waiting for others. */
  readonly breakers: Pick<Breakers, 'isAnyAway' | 'refusalOf'> | null
  /** Called when the last call is over. */
  close(): Eventually<void>
}

/** The stage at which questions become calls. */
export function withBatching(remote: Remote, send: Send, options: BatchOptions): Stage {
  const { maxChecks, breakers } = options
  const afterThisCode = options.timers.afterThisCode ?? queueMicrotask
  const afterThisTurn = options.timers.afterThisTurn ?? queueMicrotask
  const lanes = new Map<number, PendingBatch>()
  let scheduled = false
  let underWay = 0
  let onDrained: (() => void) | null = null

  const nodeOf = (check: Check | undefined): string => (check === undefined ? '' : remote.nodeOf(check))

  /** One call being assembled, and then everybody who waits for it. */
  class PendingBatch implements Call<readonly Outcome[]>, Waiter<readonly Outcome[]> {
    readonly questions: Question[] = []
    readonly waiters: Waiter<Answer>[] = []
    checks = 0
    node = ''
    sample: Check | undefined
    private isOver = false

    constructor(
      readonly action: Action,
      readonly askedAt: string,
    ) {}

    send(): Promise<readonly Outcome[]> {
      return remote.ask(this.action, this.questions, this.askedAt)
    }

    /** Each question is settled by itself: a waiter that throws is no affair of its neighbours. */
    answered(outcomes: readonly Outcome[]): void {
      if (!this.end()) return
      for (let index = 0; index < this.waiters.length; index++) {
        const waiter = this.waiters[index] as Waiter<Answer>
        const outcome = outcomes[index] ?? unanswered(remote.source, this.waiters.length, outcomes.length)
        if (isHeadgateError(outcome)) waiter.failed(outcome)
        else settle(waiter, outcome)
      }
    }

    failed(error: unknown): void {
      if (!this.end()) return
      for (const waiter of this.waiters) waiter.failed(error)
    }

    /** Whether it is over only now: nobody is told twice. */
    private end(): boolean {
      if (this.isOver) return false
      this.isOver = true
      landed()
      return true
    }
  }

  function flush(): void {
    scheduled = false
    for (const [lane, batch] of lanes) dispatch(lane, batch)
  }

  function dispatch(lane: number, batch: PendingBatch): void {
    lanes.delete(lane)
    underWay++
    try {
      batch.sample = firstCheckOf(batch.questions[0] as Question)
      batch.node = nodeOf(batch.sample)
      send(batch, batch)
    } catch (error) {
      batch.failed(error)
    }
  }

  function landed(): void {
    underWay--
    if (underWay === 0) onDrained?.()
  }

  /** While calls are in flight, the next one may as well take what other sockets of this turn bring. */
  function schedule(): void {
    scheduled = true
    if (underWay === 0) afterThisCode(flush)
    else afterThisTurn(flush)
  }

  /** Makes a call other than a question, after those that were asked before. */
  function sendAfter<Reply>(checks: readonly Check[], make: () => Promise<Reply>): Promise<Reply> {
    const [check] = checks
    flush()
    underWay++
    return new Promise<Reply>((resolve, reject) => {
      send(
        { node: nodeOf(check), sample: check, checks: checks.length, send: make },
        { answered: resolve, failed: reject },
      )
    }).finally(landed)
  }

  function ask(action: Action, question: Question, waiter: Waiter<Answer>): null {
    const refusal = breakers?.isAnyAway() ? breakers.refusalOf(nodeOf(firstCheckOf(question))) : null
    if (refusal !== null) {
      waiter.failed(refusal)
      return null
    }
    const lane = remote.laneOf(question)
    const askedAt = remote.askedAt?.() ?? ''
    let batch = lanes.get(lane)
    if (batch !== undefined && (batch.action !== action || batch.askedAt !== askedAt)) {
      dispatch(lane, batch)
      batch = undefined
    }
    if (batch === undefined) {
      batch = new PendingBatch(action, askedAt)
      lanes.set(lane, batch)
      if (!scheduled) schedule()
    }
    batch.questions.push(question)
    batch.waiters.push(waiter)
    batch.checks += countChecks(question)
    if (batch.checks >= maxChecks) dispatch(lane, batch)
    return null
  }

  return {
    source: remote.source,
    ask,
    refund: refunds =>
      sendAfter(
        refunds.map(({ check }) => check),
        () => remote.refund(refunds),
      ),
    renew: renewals =>
      sendAfter(
        renewals.map(({ check }) => check),
        () => remote.renew(renewals),
      ),
    reset: checks => sendAfter(checks, () => remote.reset(checks)),
    async close() {
      flush()
      if (underWay > 0) {
        await new Promise<void>(resolve => {
          onDrained = resolve
        })
      }
      await options.close()
    },
  }
}

function unanswered(source: Source, asked: number, answers: number): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_STORE_REPLY', {
    field: source,
    expected: `an answer to each of ${asked} questions`,
    got: String(answers),
  })
}
