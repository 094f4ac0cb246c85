/** Calls to the nodes of a remote store, and the unanswered ones. */

import type { Check } from '../../engine/question.js'
import { settleWith, type Waiter } from '../waiter.js'

/** One call to a node of a remote store: a batch of questions, refunds or a reset. */
export interface Call<Reply> {
  /** The node that answers it; '' if there is only one. */
  readonly node: string
  /** One of its checks, so that a probe can be made like it. */
  readonly sample: Check | undefined
  /** Its number of checks: what it costs the node. */
  readonly checks: number
  /** Makes the call. Rejects if it fails, and never throws. */
  send(): Promise<Reply>
}

/** Passes a call on towards its node; `waiter` gets the outcome. */
export type Send = <Reply>(call: Call<Reply>, waiter: Waiter<Reply>) => void

/** The end of the pipeline: makes the call. */
export const sendCall: Send = (call, waiter) => settleWith(waiter, call.send())

/** This many checks keep a node busy for a good part of a deadline. */
const MANY_CHECKS = 1_000

/** The checks a node has been sent and has not answered, given up or not. */
export class Backlog {
  checks = 0
  replies = 0
}

/** A call that knows whether it only waited behind what this process had sent before it. */
export class BacklogCall<Reply> implements Call<Reply> {
  readonly #call: Call<Reply>
  readonly #backlog: Backlog
  readonly #checksAhead: number
  readonly #repliesBefore: number

  constructor(call: Call<Reply>, backlog: Backlog) {
    this.#call = call
    this.#backlog = backlog
    this.#checksAhead = backlog.checks
    this.#repliesBefore = backlog.replies
  }

  get node(): string {
    return this.#call.node
  }

  get sample(): Check | undefined {
    return this.#call.sample
  }

  get checks(): number {
    return this.#call.checks
  }

  /** A node that keeps answering a long queue of ours, however late, has not stopped. */
  get wasHeldUpByUs(): boolean {
    return this.#checksAhead >= MANY_CHECKS && this.#backlog.replies > this.#repliesBefore
  }

  send(): Promise<Reply> {
    const backlog = this.#backlog
    const { checks } = this
    backlog.checks += checks
    const reply = this.#call.send()
    reply.then(
      () => {
        backlog.checks -= checks
        backlog.replies++
      },
      () => {
        backlog.checks -= checks
      },
    )
    return reply
  }
}
