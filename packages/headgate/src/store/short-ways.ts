/**
 * Quicker ways into a store than `decide` and `peek`. They belong to one object: a copy of it with other methods has
 * none, so that nobody goes past what was changed.
 */
import type { Admission } from '../engine/admission.js'
import type { Denial } from '../engine/denial.js'
import type { Limit } from '../engine/limit.js'
import type { Store } from './store.js'
import type { Put } from './waiter.js'

export interface ShortWays {
  /** Without a promise at every stage between the limiter and a store that is elsewhere. */
  readonly put?: Put
  /** The way for one unit of a limit, in the scope `global`: found once, taken many times. */
  readonly wayOf?: (name: string, limit: Limit) => OneUnit
}

/** The commonest question, already asked but for who asks. */
export interface OneUnit {
  /**
   * For a subject the store knows by exactly this text: true with `admission` filled in, or the denial. False, with
   * nothing charged, when the store does not know: then the question has to be asked in full.
   */
  take(subject: string, admission: Admission): Denial | boolean
  /** The same for a subject that is its own name. False for one the store knows, and where it cannot admit the newcomer. */
  takeFirst?(subject: string, admission: Admission): boolean
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
