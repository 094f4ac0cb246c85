import type { Answer, Check, Question, Refund, Renewal } from '../../engine/question.js'
import type { HeadgateError } from '../../errors/headgate-error.js'
import type { Clock } from '../../time/clock.js'
import type { Action } from '../stage.js'
import type { Eventually, Source } from '../store.js'
import type { Beat } from './fleet.js'

/** The answer to one question of a call, or why there is none although the call itself succeeded. */
export type Outcome = Answer | HeadgateError

/** The end of the pipeline: a store outside this process, without any guard. */
export interface Remote {
  readonly source: Source
  /** Whether subjects are on different nodes, so that no call can be about two of them. */
  readonly isSplit: boolean
  /** Returns the lane of a question; questions of one lane can share a call. */
  laneOf(question: Question): number
  /** Returns the node that holds the state of a check; '' if there is only one. */
  nodeOf(check: Check): string
  /** Returns the name operators know a node by, or that of the whole store for ''. Never a secret. */
  nameOf(node: string): string
  /** A test's clock, by which denials last too. */
  readonly testClock?: Clock
  /**
   * The time a test gives to a question; questions of different times cannot share a call. Default: the server's
   * own clock.
   */
  askedAt?(): string
  ask(action: Action, questions: readonly Question[], askedAt: string): Promise<readonly Outcome[]>
  refund(refunds: readonly Refund[]): Promise<readonly number[]>
  renew(renewals: readonly Renewal[]): Promise<readonly boolean[]>
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
  close(): Eventually<void>
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
}
