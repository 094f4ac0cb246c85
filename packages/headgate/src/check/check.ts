import type { Limit, Usage } from '../algorithms/algorithm.js'

/** One limit and the subject it is asked for: with scope and name it identifies a state. */
export interface Check {
  /** The subject: `type:id`, canonical and without secrets. */
  readonly subject: string
  /** `global` or a narrower scope. */
  readonly scope: string
  /** Names the limit of a policy: `<policy>.<limit id>`. */
  readonly name: string
  readonly limit: Limit
  /** The units it takes. */
  readonly cost: number
}

/** How to treat a request that the store could not decide. */
export type FailureMode =
  /** Decide in this process, with its share of the limit. */
  | 'local'
  /** Let it pass. */
  | 'open'
  /** Deny it: 503, to be tried again. */
  | 'closed'

/**
 * The decider: a shared store, this process alone, the failure mode, or nobody: `none` for a request that nothing
 * limits or that the policy file skips.
 */
export type DecisionSource = 'redis' | 'memory' | FailureMode | 'none'

/** A permit that a request in flight continues to hold. */
export interface Renewal {
  readonly check: Check
  /** When it was taken, according to the decision. */
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
  /** Whether it was charged to this process's share, because the store could not be asked. */
  readonly isLocal?: boolean
}

/** Units to be added to a quota, once for each id; 0 only asks what was used. */
export interface Credit {
  readonly check: Check
  readonly units: number
  readonly id: string
  /** How long the id is remembered. */
  readonly idForMs: number
  /** Whether they last; otherwise they end with the period. */
  readonly isLasting: boolean
}

/** What was used after a credit, and whether it was added: not if its id was known. */
export interface Credited {
  readonly usage: Usage
  readonly isAdded: boolean
}

/** Whether two checks are about one state. */
export function isSameState(one: Check, other: Check): boolean {
  return one.subject === other.subject && one.name === other.name && one.scope === other.scope
}

/** A text by which states are told apart: different ones have different texts. */
export function stateOf({ subject, scope, name }: Check): string {
  return JSON.stringify([subject, scope, name])
}
