import type { Check, Question } from '../../engine/question.js'
import { isHeadgateError } from '../../errors/headgate-error.js'
import type { Clock, Timers } from '../../time/clock.js'
import type { Waiter } from '../waiter.js'
import { type Breaker, type BreakerOptions, createBreaker, type Pass } from './breaker.js'
import type { Call, Send } from './call.js'
import { isNodeFailure, unavailable } from './failure.js'
import type { OnGuardEvent } from './guard-event.js'

export interface BreakersOptions extends BreakerOptions {
  /** Returns the call that asks a node such a question. */
  probeCall(node: string, question: Question): Call<unknown>
  /** Called when a node has stopped answering, to replace a connection that may be dead. */
  onOpen?(node: string): void
  readonly clock: Clock
  readonly timers: Timers
  readonly random: () => number
  readonly onEvent: OnGuardEvent
}

/** Breakers in front of the calls. */
export interface Breakers {
  readonly send: Send
  /** Whether any node must not be called. */
  isAnyAway(): boolean
  /** Returns the error of a call to a node that must not be called; null for any other. */
  refusalOf(node: string): Error | null
  /** Probes unreachable nodes at once, because there is a new connection. */
  probeNow(): void
  close(): void
}

interface Node {
  readonly name: string
  readonly breaker: Breaker
  readonly refusal: Error
  readonly backlog: Backlog
  /** A check of a call that failed there: a question like it finds out whether the node is back. */
  sample: Check | undefined
}

/** Stops calling a node that keeps failing, and probes it in the background, one probe at a time. */
export function withBreakers(next: Send, options: BreakersOptions): Breakers {
  const nodes = new Map<string, Node>()
  const away = new Set<string>()
  const callOffs = new Set<() => void>()
  let closed = false
  const nowMs = (): number => options.clock.nowUs() / 1000

  function nodeNamed(name: string): Node {
    let node = nodes.get(name)
    if (node === undefined) {
      const breaker = createBreaker(options, options.random, (state, because) => {
        if (state === 'closed') away.delete(name)
        else away.add(name)
        options.onEvent({ type: 'breaker', node: name, state, because })
        if (state === 'open') afterOpening(name)
      })
      node = { name, breaker, refusal: unavailable(name), backlog: new Backlog(), sample: undefined }
      nodes.set(name, node)
    }
    return node
  }

  function afterOpening(name: string): void {
    // Calls cut off by closing fail too: nobody may probe the node or connect to it any more.
    if (closed) return
    try {
      options.onOpen?.(name)
    } catch {
      // A connection that cannot be replaced must not keep waiters from being notified.
    }
    const node = nodes.get(name) as Node
    const waitMs = Math.ceil((node.breaker.probeAtMs ?? 0) - nowMs()) + 1
    const callOff = options.timers.inBackground(waitMs, () => {
      callOffs.delete(callOff)
      probe(node)
    })
    callOffs.add(callOff)
  }

  function probe({ name, breaker, sample }: Node, early = false): void {
    const startMs = nowMs()
    const pass = breaker.enterProbe(startMs, early)
    if (pass === null) return
    const succeed = (): void => breaker.probeSucceeded(pass, nowMs(), nowMs() - startMs)
    next(options.probeCall(name, probeLike(sample)), {
      answered: succeed,
      // One that was never sent has found nothing out.
      failed: error =>
        isNodeFailure(error) || isUnasked(error)
          ? breaker.failed(pass, nowMs(), failureOf(error))
          : succeed(),
    })
  }

  /** Reports the outcome of a call to the breaker before the waiter gets it. */
  class BreakerWaiter<Reply> implements Waiter<Reply> {
    constructor(
      readonly node: Node,
      readonly pass: Pass,
      readonly call: BacklogCall<Reply>,
      readonly waiter: Waiter<Reply>,
    ) {}

    answered(reply: Reply): void {
      this.node.breaker.succeeded(this.pass)
      this.waiter.answered(reply)
    }

    failed(error: unknown): void {
      const { node, pass, call } = this
      node.sample = call.sample
      if (call.wasHeldUpByUs || isUnasked(error)) node.breaker.withdrawn(pass)
      else if (isNodeFailure(error)) node.breaker.failed(pass, nowMs(), failureOf(error))
      else node.breaker.succeeded(pass)
      this.waiter.failed(error)
    }
  }

  return {
    send(call, waiter) {
      const node = nodeNamed(call.node)
      const pass = node.breaker.enter(nowMs())
      if (pass === null) {
        waiter.failed(node.refusal)
        return
      }
      const tracked = new BacklogCall(call, node.backlog)
      next(tracked, new BreakerWaiter(node, pass, tracked, waiter))
    },
    isAnyAway: () => away.size > 0,
    refusalOf: name => (away.has(name) ? nodeNamed(name).refusal : null),
    probeNow() {
      for (const node of nodes.values()) probe(node, true)
    },
    close() {
      closed = true
      for (const callOff of callOffs) callOff()
      callOffs.clear()
    },
  }
}

/** Whether the call was refused in this process, for reasons of its own. */
function isUnasked(error: unknown): boolean {
  return isHeadgateError(error) && error.code === 'ERR_HEADGATE_STORE_UNAVAILABLE'
}

function failureOf(error: unknown): 'refused' | 'silent' {
  return isHeadgateError(error) && error.code === 'ERR_HEADGATE_STORE_TIMEOUT' ? 'silent' : 'refused'
}

const PROBE_NAME = 'probe'

/**
 * Creates a question whose answer proves that the node decides: it uses the same commands and slot, and writes,
 * because a node that is out of memory or has become a replica still answers reads. It charges a key of its own
 * that no limit has and that expires in seconds.
 */
function probeLike(sample: Check | undefined): Question {
  if (sample === undefined) return { alternatives: [[]], shadow: [] }
  const { subject, scope, limit } = sample
  const check = { subject, scope, name: PROBE_NAME, limit: limit.algorithm.probe(limit), cost: 1 }
  return { alternatives: [[check]], shadow: [] }
}

/** As many checks keep a node busy for a good part of a deadline. */
const MANY_CHECKS = 1_000

/** The checks a node has been sent and has not answered, given up or not. */
class Backlog {
  checks = 0
  replies = 0
}

/** A call that knows whether it only had to wait for what this process had sent before it. */
class BacklogCall<Reply> implements Call<Reply> {
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
