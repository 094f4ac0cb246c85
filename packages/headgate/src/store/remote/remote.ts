import type { Check, Credit, Credited, DecisionSource, Refund, Renewal } from '../../check/check.js'
import type { PendingCheck } from '../../check/pending-check.js'
import type { HeadgateError } from '../../errors/headgate-error.js'
import type { Clock } from '../../time/clock.js'
import type { MaybePromise } from '../store.js'
import type { Beat } from './fleet.js'

/** A store outside this process as it is without any guard: it may be slow, fail or never answer. */
export interface Remote {
  readonly source: DecisionSource
  /** Whether subjects are on different nodes, so that no call can be about two of them. */
  readonly isSplit: boolean
  /** Checks of one batch key can share a call. */
  batchKeyOf(check: PendingCheck): number
  /** Returns the node that holds a state; '' if there is only one. */
  nodeOf(state: Pick<Check, 'subject' | 'scope' | 'name'>): string
  /** Returns the name operators know a node by, or that of the whole store for ''. Never a secret. */
  nameOf(node: string): string
  /** A test's clock, by which denials last too. */
  readonly testClock?: Clock
  /** The time a test gives to a check; checks of different times cannot share a call. Default: the server's own clock. */
  testTime?(): string
  /** Charges all checks in one call, or only looks. Resolves to the raw reply. */
  ask(checks: readonly PendingCheck[], isPeek: boolean, testTime: string): Promise<unknown>
  /**
   * Writes the numbers of a reply into its checks. Returns the errors of those that failed although the call succeeded, in
   * order, or null if none did; throws for a reply that is not one.
   */
  read(reply: unknown, checks: readonly PendingCheck[]): readonly (HeadgateError | null)[] | null
  /** The policies have changed: what was made for the plans of old ones may go. */
  forgetPlans?(): void
  refund(refunds: readonly Refund[]): Promise<readonly number[]>
  renew(renewals: readonly Renewal[]): Promise<readonly boolean[]>
  /** Adds units to a quota; left out if the store has no credits. */
  credit?(credit: Credit): Promise<Credited>
  reset(checks: readonly Check[]): Promise<void>
  /** Counts this process in; returns how many there are, and how many nodes have forgotten it. */
  heartbeat(): Promise<Beat>
  /** Whether nothing runs outside of requests. */
  readonly onDemand?: boolean
  /** The connection that is being made while the store is new, if there is one to wait for. */
  readonly firstConnection?: FirstConnection
  /** Replaces the connection to a node that stopped answering. */
  replaceConnection?(node: string): void
  /** Registers a listener for every new connection. */
  onConnected?(listener: () => void): void
  /** Whether a node may evict limits. */
  isEvictionUnsafe?(): boolean
  close(): MaybePromise<void>
}

/** Lets calls wait for the first connection. */
export interface FirstConnection {
  /**
   * Undefined once there has been a connection. Otherwise settles when there is one, or rejects when waiting is no
   * longer worthwhile: when the time is up, or when it failed. `withinMs` sets a minimum wait.
   */
  wait(withinMs?: number): Promise<void> | undefined
  /** Until when calls wait for it, on the clock in milliseconds. */
  readonly untilMs: number
  /** Ends the wait within the deadline, because the store is closing. */
  hurry(): void
  /** Gives up every call that still waits. */
  close(): void
}
