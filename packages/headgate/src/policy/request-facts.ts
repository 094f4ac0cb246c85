import type { PerAddress } from '../subject/identify.js'
import type { SubjectInput } from '../subject/subject.js'
import type { PathReading } from './path-readings.js'

/** The facts of a request that rules look at. Framework types stop before this. */
export interface RequestFacts<TierName extends string = string> {
  /**
   * The subjects of the request, from the most specific to the least: `['apikey:k1', 'user:42', 'ip:192.0.2.1']`. A
   * single one needs no list.
   */
  readonly subject: SubjectInput | readonly SubjectInput[]
  readonly method?: string
  /** The methods it claims in headers or the query (`claimedMethods`). The rules of all of them apply. */
  readonly claimedMethods?: readonly string[]
  /** The request's target as received: a path with or without a query. */
  readonly path?: string
  /** The caller's tier, if a session or a key told it. */
  readonly tier?: TierName
  /** The scope, if the path does not determine it. */
  readonly scope?: string
  /** The cost of the request. Default: what the rules say. */
  readonly cost?: number
  /** The id of the request, by which its denial can be found. */
  readonly requestId?: string
  /** Those of the subjects that anybody can make up. They are charged to an address, too, all or none. */
  readonly perAddress?: PerAddress
}

/**
 * Request facts with the subjects named for the store, the methods in upper case and the path in all its readings.
 */
export interface CanonicalFacts {
  readonly subjects: readonly string[]
  /** The method it was sent with, then all it claims. Never empty; null stands for an unknown method. */
  readonly methods: readonly (string | null)[]
  /** Null: not known. `too-many`: the path can be read in more ways than we are willing to look at. */
  readonly path: readonly PathReading[] | 'too-many' | null
  readonly tier: string | null
  readonly scope: string | null
  readonly cost: number | null
  readonly minted?: Minted | null
}

/** How many times one subject's limits all made-up subjects of an address have, by the name of the subject. */
export interface Minted {
  readonly address: string
  readonly times: ReadonlyMap<string, number>
}
