import type { SubjectInput } from '../subject/subject.js'
import type { PathReading } from './path-readings.js'

/** The facts of a request that rules look at. Framework types stop before this. */
export interface RequestFacts<TierName extends string = string> {
  /**
   * The subjects that ask, from the most specific to the least: `['apikey:k1', 'user:42', 'ip:192.0.2.1']`, or one
   * alone.
   */
  readonly subject: SubjectInput | readonly SubjectInput[]
  readonly method?: string
  /** The methods it claims to be in headers or the query (`claimedMethods`): the rules of all hold. */
  readonly claimedMethods?: readonly string[]
  /** The request's target as it came: a path, with a query or without. */
  readonly path?: string
  /** The caller's tier, where a session or a key has told it. */
  readonly tier?: TierName
  /** The scope, where the path does not say it. */
  readonly scope?: string
  /** Units the request takes; what the rules say when left out. */
  readonly cost?: number
}

/** Request facts with their subjects named for the store, the methods in one spelling, the path in all its readings. */
export interface CanonicalFacts {
  readonly subjects: readonly string[]
  /** As it was sent, where that is known, and all it claims to be. At least one; null for one that is not known. */
  readonly methods: readonly (string | null)[]
  /** Null: not known. `too-many`: a path that can be read in more ways than anybody may ask for. */
  readonly path: readonly PathReading[] | 'too-many' | null
  readonly tier: string | null
  readonly scope: string | null
  readonly cost: number | null
}
