import type { Limit } from '../algorithms/algorithm.js'
import { hasSameNumbers } from './limit.js'

/** One limit and the subject it is asked for, ready to be put to a store. */
export interface Check {
  /** The subject: `type:id`, canonical and without secrets. */
  readonly subject: string
  /** `global` or a narrower scope. */
  readonly scope: string
  /** Names the limit of a policy: `<policy>.<limit id>`. With subject and scope it identifies the state. */
  readonly name: string
  readonly limit: Limit
  readonly cost: number
}

/** How to treat a request that the store could not decide. */
export type FailureMode =
  /** Decide in this process, with its share of the limit. */
  | 'local'
  /** Let it pass. */
  | 'open'
  /** Refuse it: 503, to be tried again. */
  | 'closed'

/**
 * A question to a store: the first alternative whose checks all fit is charged as a whole, never in part. Shadow
 * checks are separate: each is charged if it fits, whatever becomes of the request, and never binds.
 */
export interface Question {
  readonly alternatives: readonly (readonly Check[])[]
  readonly shadow: readonly Check[]
  /** The failure mode. Default: the store's own. */
  readonly onStoreFailure?: FailureMode | undefined
}

/** The answer to one check. */
export interface Verdict {
  /** Whether this check by itself had room. */
  readonly allowed: boolean
  /** Units left, after the charge if it was made. */
  readonly remaining: number
  /** 0 if allowed; `NEVER` for a cost above the capacity. */
  readonly retryAfterUs: number
  readonly resetAfterUs: number
  /** The store's time at which the charge counts; null if nothing was charged. */
  readonly chargedAtUs: number | null
}

/** The answer to a question: verdicts in the question's order, for the alternatives that were looked at. */
export interface Answer {
  /** The index of the charged alternative, or −1 if denied. */
  readonly charged: number
  readonly verdicts: readonly (readonly Verdict[])[]
  readonly shadow: readonly Verdict[]
  /** Whether it was decided from units leased by this process; `remaining` is then what it knows of. */
  readonly leased?: boolean
  /** The decider, if not the store; `none` if nothing limits the request and nobody was asked. */
  readonly source?: FailureMode | 'none'
  /** The reading of the store's clock, if the store is in this process. */
  readonly nowUs?: number | undefined
}

/** A place that a request in flight continues to hold. */
export interface Renewal {
  readonly check: Check
  /** When it was taken, according to the verdict. */
  readonly takenAtUs: number
  /** Whether the process took it by itself, because the store could not be asked. */
  readonly isLocal?: boolean
}

/**
 * A charge to be taken back: `units` of it, at the time it was made or, without one, the oldest first. Negative
 * units are charged in addition, whether they fit or not, because the request has already used them.
 */
export interface Refund {
  readonly check: Check
  readonly units: number
  readonly chargedAtUs: number | null
  /** For units that nobody spent: what a bucket has refilled since this store time is not given back. */
  readonly heldSinceUs?: number | undefined
  /** Whether it is a place that the process took by itself, because the store could not be asked. */
  readonly isLocal?: boolean
}

/** Whether two checks are about one state. */
export function isSameState(one: Check, other: Check): boolean {
  return one.subject === other.subject && one.name === other.name && one.scope === other.scope
}

/** Whether they also hold it to the same numbers. */
export function isSameLimit(one: Check, other: Check): boolean {
  return isSameState(one, other) && (one.limit === other.limit || hasSameNumbers(one.limit, other.limit))
}

/** A text by which states are told apart: different ones have different texts. */
export function stateOf({ subject, scope, name }: Check): string {
  return JSON.stringify([subject, scope, name])
}
