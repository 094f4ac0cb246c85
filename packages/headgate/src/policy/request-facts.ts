import type { SubjectInput } from '../subject/subject.js'

/** What the rules look at. Framework types stop before this. */
export interface RequestFacts {
  /** Who asks, from the most specific to the least: `['apikey:k1', 'user:42', 'ip:192.0.2.1']`, or one alone. */
  readonly subject: SubjectInput | readonly SubjectInput[]
  readonly method?: string
  /** The method it claims to be in a header or the query (`claimedMethod`): the rules of both hold. */
  readonly claimedMethod?: string
  /** The request's target as it came: a path, with a query or without. */
  readonly path?: string
  /** The caller's tier, where a session or a key has told it. */
  readonly tier?: string
  /** What is asked for, where that is not said by a path. */
  readonly scope?: string
  /** Units the request takes; what the rules say when left out. */
  readonly cost?: number
}

/** Request facts with their subjects named for the store, the method in one spelling, the path in all its readings. */
export interface CanonicalFacts {
  readonly subjects: readonly string[]
  readonly method: string | null
  readonly claimedMethod: string | null
  readonly path: readonly (readonly string[])[] | null
  readonly tier: string | null
  readonly scope: string | null
  readonly cost: number | null
}
