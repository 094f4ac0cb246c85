import type { Limit } from './limit.js'

/** One limit and whom it is asked for: ready to be put to a store. */
export interface Check {
  /** Who: `type:id`, canonical and without secrets. */
  readonly subject: string
  /** For what: `global` or a narrower scope. */
  readonly scope: string
  /** Which limit of which policy: `<policy>.<limit id>`. With subject and scope it names the state. */
  readonly name: string
  readonly limit: Limit
  readonly cost: number
}

/**
 * What a store is asked: the first alternative all of whose checks fit is charged, whole; none is charged in part.
 * Shadow checks stand apart: each is charged when it fits, whatever becomes of the request, and never binds.
 */
export interface Question {
  readonly alternatives: readonly (readonly Check[])[]
  readonly shadow: readonly Check[]
  /** What decides when the store cannot; the store's own default when left out. */
  readonly onStoreFailure?: 'local' | 'open' | 'closed' | undefined
}

/** The answer to one check. */
export interface Verdict {
  /** Whether this check by itself had room. */
  readonly allowed: boolean
  /** Units left, after the charge if it was made. */
  readonly remaining: number
  /** 0 when allowed; `NEVER` for a cost above the capacity. */
  readonly retryAfterUs: number
  readonly resetAfterUs: number
  /** The store's time at which the charge counts; null when nothing was charged. */
  readonly chargedAtUs: number | null
}

/** The answer to a question: verdicts in the question's order, for the alternatives that were looked at. */
export interface Answer {
  /** Index of the alternative that was charged, or −1: denied. */
  readonly charged: number
  readonly verdicts: readonly (readonly Verdict[])[]
  readonly shadow: readonly Verdict[]
  /** Whether it was decided from units this process had taken in advance; `remaining` is then what it knows. */
  readonly leased?: boolean
  /** Who decided, where it was not the store that was asked. */
  readonly source?: 'local' | 'open' | 'closed'
  /** Reading of the store's clock, where that is in this process. */
  readonly nowUs?: number | undefined
}

/** A charge to be taken back: `units` of it, at the time it was made or, without one, the oldest first. */
export interface Refund {
  readonly check: Check
  readonly units: number
  readonly chargedAtUs: number | null
  /** For units that nobody spent: what a bucket has refilled since this time of the store has made up for them. */
  readonly heldSinceUs?: number | undefined
}
