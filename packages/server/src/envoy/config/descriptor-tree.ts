/**
 * The limits of a domain: a tree of keys and values, through which a descriptor's entries are followed in order.
 */
import type { Limit } from 'headgate'
import type { Unit } from '../descriptor.js'

/** A limit as written in envoyproxy/ratelimit's files. */
export interface DescriptorLimit {
  /** Null: unlimited. */
  readonly limit: Limit | null
  /** The number shown to clients, per unit. */
  readonly requestsPerUnit: number
  /** Null for a window that is not one of Envoy's units. */
  readonly unit: Unit | null
  readonly name: string
  /** Names of other limits that do not apply where this one does. */
  readonly replaces: readonly string[]
  /** `quota`: a request is denied only if all limits of this kind are used up. */
  readonly mode: 'enforce' | 'shadow' | 'quota'
  /** Returned where it applies; null if there is none. */
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
  /** The value as written, with its `*`. */
  readonly pattern: string
  /** Whether all matching values share one budget. */
  readonly isShared: boolean
  readonly node: DescriptorNode
}

/** By domain. */
export type DescriptorConfig = ReadonlyMap<string, DescriptorNode>
