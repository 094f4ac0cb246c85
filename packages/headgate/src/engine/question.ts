import type { Limit } from './limit.js'

/** One limit and whom it is asked for: ready to be put to a store. */
export interface Check {
  /** The subject: `type:id`, canonical and without secrets. */
  readonly subject: string
  /** For what: `global` or a narrower scope. */
  readonly scope: string
  /** Names the limit of a policy: `<policy>.<limit id>`. With subject and scope it names the state. */
  readonly name: string
  readonly limit: Limit
  readonly cost: number
}

/** The way to treat a request that the store could not decide. */
export type FailureMode =
  /** Decide in this process, at its share of the limit. */
  | 'local'
  /** Let it pass. */
  | 'open'
  /** Refuse it: 503, to be tried again. */
  | 'closed'

/**
 * A question to a store: the first alternative all of whose checks fit is charged, whole; none is charged in part.
 * Shadow checks stand apart: each is charged when it fits, whatever becomes of the request, and never binds.
 */
export interface Question {
  readonly alternatives: readonly (readonly Check[])[]
  readonly shadow: readonly Check[]
  /** The failure mode; the store's own default when left out. */
  readonly onStoreFailure?: FailureMode | undefined
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
  /** The decider, where it was not the store; `none` where nothing limits the request and nobody was asked. */
  readonly source?: FailureMode | 'none'
  /** Reading of the store's clock, where that is in this process. */
  readonly nowUs?: number | undefined
}

/** A place that a request under way goes on holding. */
export interface Renewal {
  readonly check: Check
  /** When it was taken, as the verdict said. */
  readonly takenAtUs: number
  /** Whether the process that asked had taken it by itself, for want of the store. */
  readonly isLocal?: boolean
}

/**
 * A charge to be taken back: `units` of it, at the time it was made or, without one, the oldest first. Negative
 * units are charged in addition, whether they fit or not: the request has used them already.
 */
export interface Refund {
  readonly check: Check
  readonly units: number
  readonly chargedAtUs: number | null
  /** For units that nobody spent: what a bucket has refilled since this time of the store has made up for them. */
  readonly heldSinceUs?: number | undefined
  /** Whether it is a place that the process that asked had taken by itself, for want of the store. */
  readonly isLocal?: boolean
}
