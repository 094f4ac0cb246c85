/** The nodes of a remote store, each with a breaker: one that keeps failing is not called, and probed in the background. */
import type { Check } from '../../check/check.js'
import { type ErrorCode, HeadgateError, isHeadgateError } from '../../errors/headgate-error.js'
import type { Clock, Timers } from '../../time/clock.js'
import { type Breaker, type BreakerOptions, createBreaker } from './breaker.js'
import type { Call } from './call.js'
import type { OnStoreEvent } from './store-event.js'

export type { Pass } from './breaker.js'

export interface NodesOptions extends BreakerOptions {
  /** Asks a node a question whose answer proves that it decides and writes, like that of `sample`. */
  probe(node: string, sample: Check | undefined): Promise<unknown>
  /** Called when a node has stopped answering, to replace a connection that may be dead. */
  replaceConnection(node: string): void
  readonly clock: Clock
  readonly timers: Timers
  readonly random: () => number
  readonly onEvent: OnStoreEvent
}

/** One node of the store. */
export interface Node {
  readonly name: string
  readonly breaker: Breaker
  /** The error of a call that is not made because the node has stopped answering. */
  readonly unavailable: HeadgateError
  /** Checks that it was sent and has not answered, given up or not, and the calls it has answered. */
  checksAhead: number
  replies: number
  /** A check of a call that failed there: one like it finds out whether the node is back. */
  sample: Check | undefined
}

/** As many checks keep a node busy for a good part of a deadline. */
const MANY_CHECKS = 1_000

export class Nodes {
  private readonly nodes = new Map<string, Node>()
  private readonly away = new Set<string>()
  private readonly timersSet = new Set<() => void>()
  private isClosed = false

  constructor(private readonly options: NodesOptions) {}

  /** Whether any node must not be called. */
  get isAnyAway(): boolean {
    return this.away.size > 0
  }

  /** The error of a check for a node that must not be called; null for any other. */
  unavailable(name: string): HeadgateError | null {
    return this.away.has(name) ? this.nodeNamed(name).unavailable : null
  }

  /** Lets a call pass, unless its node has stopped answering: then returns the error. */
  enter(call: Call): HeadgateError | null {
    const node = this.nodeNamed(call.nodeName)
    const pass = node.breaker.enter(this.nowMs())
    if (pass === null) return node.unavailable
    call.node = node
    call.pass = pass
    return null
  }

  /** A call is being sent. */
  sent(call: Call): void {
    const { node, checkCount } = call
    if (node === null) return
    call.checksAhead = node.checksAhead
    call.repliesBefore = node.replies
    node.checksAhead += checkCount
  }

  /** A reply came to a call, in time or not, or it failed. */
  cameBack({ node, checkCount }: Call, isReply: boolean): void {
    if (node === null) return
    node.checksAhead -= checkCount
    if (isReply) node.replies++
  }

  answered(call: Call): void {
    if (call.node !== null && call.pass !== null) call.node.breaker.succeeded(call.pass)
  }

  /** A call failed: whether that counts against its node depends on why. */
  failed(call: Call, error: unknown): void {
    const { node, pass } = call
    if (node === null || pass === null) return
    node.sample = call.sample ?? node.sample
    if (wasHeldUpByUs(call, node) || isUnasked(error)) node.breaker.withdrawn(pass)
    else if (isNodeFailure(error)) node.breaker.failed(pass, this.nowMs(), failureOf(error))
    else node.breaker.succeeded(pass)
  }

  /** Probes nodes that are away at once, because there is a new connection. */
  probeNow(): void {
    for (const node of this.nodes.values()) this.probe(node, true)
  }

  close(): void {
    this.isClosed = true
    for (const cancel of this.timersSet) cancel()
    this.timersSet.clear()
  }

  private nowMs(): number {
    return this.options.clock.nowUs() / 1000
  }

  private nodeNamed(name: string): Node {
    let node = this.nodes.get(name)
    if (node === undefined) {
      const { random, onEvent } = this.options
      const breaker = createBreaker(this.options, random, (state, because) => {
        if (state === 'closed') this.away.delete(name)
        else this.away.add(name)
        onEvent({ type: 'breaker', node: name, state, because })
        if (state === 'open') this.opened(name)
      })
      node = { name, breaker, unavailable: unavailable(name), checksAhead: 0, replies: 0, sample: undefined }
      this.nodes.set(name, node)
    }
    return node
  }

  private opened(name: string): void {
    // Calls cut off by closing fail too: nobody may probe the node or connect to it any more.
    if (this.isClosed) return
    try {
      this.options.replaceConnection(name)
    } catch {
      // A connection that cannot be replaced must not keep the checks from being decided.
    }
    const node = this.nodes.get(name) as Node
    const waitMs = Math.ceil((node.breaker.probeAtMs ?? 0) - this.nowMs()) + 1
    const cancel = this.options.timers.inBackground(waitMs, () => {
      this.timersSet.delete(cancel)
      this.probe(node)
    })
    this.timersSet.add(cancel)
  }

  private probe({ name, breaker, sample }: Node, isEarly = false): void {
    const startMs = this.nowMs()
    const pass = breaker.enterProbe(startMs, isEarly)
    if (pass === null) return
    const succeed = (): void => breaker.probeSucceeded(pass, this.nowMs(), this.nowMs() - startMs)
    this.options.probe(name, sample).then(succeed, error => {
      // One that was never sent has found nothing out.
      if (isNodeFailure(error) || isUnasked(error)) breaker.failed(pass, this.nowMs(), failureOf(error))
      else succeed()
    })
  }
}

/** Whether a call only waited for what this process had sent before it: a node that goes on answering has not stopped. */
function wasHeldUpByUs(call: Call, node: Node): boolean {
  return call.checksAhead >= MANY_CHECKS && node.replies > call.repliesBefore
}

/** Failures that concern the node: it did not answer, or said that it cannot. */
const NODE_FAILURES: readonly ErrorCode[] = [
  'ERR_HEADGATE_STORE',
  'ERR_HEADGATE_STORE_TIMEOUT',
  'ERR_HEADGATE_STORE_REPLY',
]
/** Failures of the store for which the failure mode decides. */
const STORE_FAILURES: readonly ErrorCode[] = [
  ...NODE_FAILURES,
  'ERR_HEADGATE_STORE_KEY',
  'ERR_HEADGATE_STORE_UNAVAILABLE',
  'ERR_HEADGATE_STORE_CAPPED',
]

/** An error of a single key never counts against its node, or whoever wrote it could open the breaker. */
function isNodeFailure(error: unknown): boolean {
  return !isHeadgateError(error) || NODE_FAILURES.includes(error.code)
}

/** Whether the store failed, and not the caller. */
export function isStoreFailure(error: unknown): boolean {
  return !isHeadgateError(error) || STORE_FAILURES.includes(error.code)
}

/** Whether the store was certainly not asked. */
export function wasNotSent(error: unknown): boolean {
  return isUnasked(error) || (isHeadgateError(error) && error.code === 'ERR_HEADGATE_STORE_CAPPED')
}

/** Whether the call was not made, for reasons of this process. */
function isUnasked(error: unknown): boolean {
  return isHeadgateError(error) && error.code === 'ERR_HEADGATE_STORE_UNAVAILABLE'
}

function failureOf(error: unknown): 'rejected' | 'silent' {
  return isHeadgateError(error) && error.code === 'ERR_HEADGATE_STORE_TIMEOUT' ? 'silent' : 'rejected'
}

function unavailable(node: string): HeadgateError {
  return new HeadgateError(
    'ERR_HEADGATE_STORE_UNAVAILABLE',
    `redis: not called: ${node === '' ? 'it' : node} has stopped answering, and is probed until it recovers`,
  )
}
