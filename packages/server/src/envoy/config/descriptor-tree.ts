/**
 * The limits of a domain: a tree of keys and values, which a descriptor's entries are followed through in their order.
 */
import type { Limit } from 'headgate'
import type { Unit } from '../descriptor.js'

/** A limit as envoyproxy/ratelimit's files write it. */
export interface DescriptorLimit {
  /** Null: nothing limits it. */
  readonly limit: Limit | null
  /** As clients are told: so many a unit. */
  readonly requestsPerUnit: number
  /** Null for a window that is none of Envoy's units. */
  readonly unit: Unit | null
  readonly name: string
  /** Names of others that do not hold where this one does. */
  readonly replaces: readonly string[]
  /** `quota`: a request is denied only when all limits of this kind are used up. */
  readonly mode: 'enforce' | 'shadow' | 'quota'
  /** Returned where it holds; null where there is none. */
  readonly metadata: Readonly<Record<string, unknown>> | null
}

export interface DescriptorNode {
  readonly limit: DescriptorLimit | null
  readonly below: ReadonlyMap<string, KeyNodes>
}

/** The rules of one level of the tree for one key. */
export interface KeyNodes {
  readonly byValue: ReadonlyMap<string, DescriptorNode>
  /** In the order of the file. */
  readonly wildcards: readonly Wildcard[]
  readonly anyValue: DescriptorNode | null
}

export interface Wildcard {
  /** The value as it is written, with its `*`. */
  readonly pattern: string
  /** Whether all values that match have one budget together. */
  readonly isShared: boolean
  readonly node: DescriptorNode
}

/** By domain. */
export type DescriptorConfig = ReadonlyMap<string, DescriptorNode>
