/**
 * Questions asked in the same turn of the event loop travel as one script call. An interpreter that is entered once for
 * sixty checks, one reading of the server's clock and one packet cost a fraction of sixty. Nothing waits for a timer: a
 * question asked while nothing is under way leaves as soon as the code that asked it is done.
 *
 * Invariant: questions of one lane leave in the order they were asked.
 */
import type { Timers } from '../../clock.js'
import type { Answer, Question } from '../../engine/question.js'
import { type HeadgateError, isHeadgateError } from '../../errors.js'
import type { How, Waiter } from '../waiter.js'
import { singleCheckOf } from './encode.js'

/** Questions that can be one call: they are for the same script, at the same time, in the same lane. */
export interface Kind {
  readonly how: How
  /** The clock a test hands in; '' for the server's. */
  readonly clockUs: string
}

export interface BatchOptions {
  /** Checks in a call at most, so that no call holds the server for long. */
  readonly maxChecks: number
  /** What can share a call: one lane on a single server, one for each slot of a cluster. */
  laneOf(question: Question): number
  readonly timers: Timers
  /** Sends one call. One answer or error for each question, in order; rejects when the call itself failed. */
  send(kind: Kind, questions: readonly Question[]): Promise<readonly (Answer | HeadgateError)[]>
}

export interface Batch {
  ask(how: How, clockUs: string, question: Question, waiter: Waiter<Answer>): void
  /** Sends what is waiting, for what must come after it. */
  flush(): void
}

/** One call in the making. */
class Load implements Kind {
  readonly questions: Question[] = []
  readonly waiters: Waiter<Answer>[] = []
  checks = 0

  constructor(
    readonly how: How,
    readonly clockUs: string,
  ) {}

  settle(answers: readonly (Answer | HeadgateError)[]): void {
    for (let index = 0; index < answers.length; index++) {
      const answer = answers[index] as Answer | HeadgateError
      const waiter = this.waiters[index] as Waiter<Answer>
      if (isHeadgateError(answer)) waiter.failed(answer)
      else waiter.answered(answer)
    }
  }

  fail(error: unknown): void {
    for (const waiter of this.waiters) waiter.failed(error)
  }
}

export function createBatch(options: BatchOptions): Batch {
  const { maxChecks, laneOf, send } = options
  const afterThisCode = options.timers.afterThisCode ?? queueMicrotask
  const afterThisTurn = options.timers.afterThisTurn ?? queueMicrotask
  const lanes = new Map<number, Load>()
  let scheduled = false
  let underWay = 0

  function flush(): void {
    scheduled = false
    for (const [lane, load] of lanes) dispatch(lane, load)
  }

  function dispatch(lane: number, load: Load): void {
    lanes.delete(lane)
    underWay++
    send(load, load.questions).then(
      answers => {
        underWay--
        load.settle(answers)
      },
      error => {
        underWay--
        load.fail(error)
      },
    )
  }

  /** While calls are under way the next one may as well take what other sockets of this turn bring. */
  function schedule(): void {
    scheduled = true
    if (underWay === 0) afterThisCode(flush)
    else afterThisTurn(flush)
  }

  return {
    ask(how, clockUs, question, waiter) {
      const lane = laneOf(question)
      let load = lanes.get(lane)
      if (load !== undefined && (load.how !== how || load.clockUs !== clockUs)) {
        dispatch(lane, load)
        load = undefined
      }
      if (load === undefined) {
        load = new Load(how, clockUs)
        lanes.set(lane, load)
        if (!scheduled) schedule()
      }
      load.questions.push(question)
      load.waiters.push(waiter)
      load.checks += checksIn(question)
      if (load.checks >= maxChecks) dispatch(lane, load)
    },
    flush,
  }
}

function checksIn(question: Question): number {
  if (singleCheckOf(question) !== null) return 1
  return question.alternatives.reduce((sum, checks) => sum + checks.length, question.shadow.length)
}
