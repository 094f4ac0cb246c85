import type { Check } from '../../check/check.js'
import type { PendingCheck } from '../../check/pending-check.js'
import type { Batch } from './batch.js'
import type { Timed } from './deadlines.js'
import type { AskedAt } from './deny-cache.js'
import type { Node, Pass } from './nodes.js'

/** One call to a node: a batch of checks, refunds or a reset. Its answer, an error or the deadline ends it, whichever comes first. */
export abstract class Call implements Timed {
  dueMs = 0
  /** The breaker's permission to make it; null in the mode `throw`. */
  pass: Pass | null = null
  node: Node | null = null
  sentAtUs = 0
  /** What the node still had to answer when it was sent, and what it had answered. */
  checksAhead = 0
  repliesBefore = 0

  constructor(
    readonly nodeName: string,
    /** Its number of checks: what it costs the node. */
    readonly checkCount: number,
    private readonly onTimeout: (call: Call) => void,
  ) {}

  abstract readonly isOver: boolean
  /** One of its checks, so that a probe can be made like it. */
  abstract readonly sample: Check | undefined
  /** Makes the call. Rejects if it fails, and never throws. */
  abstract send(): Promise<unknown>

  giveUp(): void {
    this.onTimeout(this)
  }
}

/** A call that decides checks. Ending it takes the checks out, so that the queue of deadlines keeps none alive. */
export class CheckCall extends Call {
  private checks: readonly PendingCheck[] | null
  readonly askedAt: AskedAt | null

  constructor(
    nodeName: string,
    { checks, size, askedAt }: Batch,
    private readonly make: (checks: readonly PendingCheck[]) => Promise<unknown>,
    onTimeout: (call: Call) => void,
  ) {
    super(nodeName, size, onTimeout)
    this.checks = checks
    this.askedAt = askedAt
  }

  get isOver(): boolean {
    return this.checks === null
  }

  get sample(): Check | undefined {
    const first = this.checks?.find(check => check.plan.limits.length > 0)
    return first?.checkOf(0)
  }

  send(): Promise<unknown> {
    return this.make(this.checks ?? [])
  }

  /** The checks to settle; null if it was over already: what comes late changes nothing. */
  end(): readonly PendingCheck[] | null {
    const { checks } = this
    this.checks = null
    return checks
  }
}

/** Any other call; its caller awaits `reply`. */
export class PromisedCall<Reply> extends Call {
  readonly reply: Promise<Reply>
  isOver = false
  private resolve: (reply: Reply) => void = () => {}
  private reject: (error: unknown) => void = () => {}

  constructor(
    nodeName: string,
    readonly sample: Check | undefined,
    checkCount: number,
    private readonly make: () => Promise<Reply>,
    onTimeout: (call: Call) => void,
  ) {
    super(nodeName, checkCount, onTimeout)
    this.reply = new Promise((resolve, reject) => {
      this.resolve = resolve
      this.reject = reject
    })
  }

  send(): Promise<Reply> {
    return this.make()
  }

  succeed(reply: Reply): void {
    this.isOver = true
    this.resolve(reply)
  }

  fail(error: unknown): void {
    this.isOver = true
    this.reject(error)
  }
}
