/** Calls to the nodes of a remote store, and what of them is not answered yet. */

import type { Check } from '../../engine/question.js'
import { settleWith, type Waiter } from '../waiter.js'

/** One call to a node of a remote store: a batch of questions, refunds or a reset. */
export interface Call<Reply> {
  /** The node that answers it; '' where there is only one. */
  readonly node: string
  /** One of the checks it is about, so that a probe can be made like it. */
  readonly sample: Check | undefined
  /** How many checks it is about: what it costs the node. */
  readonly checks: number
  /** Makes the call. Rejects when it fails, and never throws. */
  send(): Promise<Reply>
}

/** Passes a call on towards its node; `waiter` hears what became of it. */
export type Send = <Reply>(call: Call<Reply>, waiter: Waiter<Reply>) => void

/** The end of the pipeline: the call is made. */
export const sendCall: Send = (call, waiter) => settleWith(waiter, call.send())

/** As many checks keep a node busy for a good part of a deadline. */
const MANY_CHECKS = 1_000

/** The checks a node has been sent and has not answered, given up or not. */
export class Backlog {
  checks = 0
  replies = 0
}

/** A call that knows whether it only had to wait for what this process had sent before it. */
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

  /** A node that goes on answering a long queue of ours, however late, has not stopped. */
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
