/**
 * Quicker ways into a store than `decide` and `peek`. They belong to one object: a copy of it with other methods has
 * none, so that nobody goes past what was changed.
 */
import type { Limit } from '../engine/limit.js'
import type { SingleAnswer } from '../engine/single.js'
import type { Store } from './store.js'
import type { Put } from './waiter.js'

export interface ShortWays {
  /** Without a promise at every stage between the limiter and a store that is elsewhere. */
  readonly put?: Put
  /**
   * The commonest question: one unit of one limit, in the scope `global`, for a subject the store knows by exactly this
   * text. Null when it does not: then the question has to be asked in full.
   */
  readonly decideKnown?: (subject: string, name: string, limit: Limit) => SingleAnswer | null
}

const NONE: ShortWays = {}
const known = new WeakMap<Store, ShortWays>()

export function shortWaysOf(store: Store): ShortWays {
  return known.get(store) ?? NONE
}

export function withShortWays<AnyStore extends Store>(store: AnyStore, ways: ShortWays): AnyStore {
  known.set(store, ways)
  return store
}

/** How the name of a subject whose id was digested goes on after its type. */
const DIGEST = ':~'

/** Whether this is the name of a subject but never its text: who knows a digest must not pass for whom it stands for. */
export function isDigested(subject: string): boolean {
  return subject.includes(DIGEST)
}
