import { type ErrorCode, HeadgateError, isHeadgateError } from '../../errors/headgate-error.js'

/** Failures that concern the node: it did not answer, or said that it cannot. */
const NODE_FAILURES: readonly ErrorCode[] = [
  'ERR_HEADGATE_STORE',
  'ERR_HEADGATE_STORE_TIMEOUT',
  'ERR_HEADGATE_STORE_REPLY',
]
/** Failures of the store for which the failure mode decides. */
const STORE_FAILURES: readonly ErrorCode[] = [
  ...NODE_FAILURES,
  'ERR_HEADGATE_STORE_KEY',
  'ERR_HEADGATE_STORE_UNAVAILABLE',
  'ERR_HEADGATE_STORE_CAPPED',
]

/**
 * Whether a failure counts against the node. An error of a single key never does, or whoever wrote it could open
 * the breaker.
 */
export function isNodeFailure(error: unknown): boolean {
  return !isHeadgateError(error) || NODE_FAILURES.includes(error.code)
}

/** Whether the store failed, and not the caller. */
export function isStoreFailure(error: unknown): boolean {
  return !isHeadgateError(error) || STORE_FAILURES.includes(error.code)
}

/** Returns the error for a store that is known not to answer and was not asked. */
export function unavailable(node: string): HeadgateError {
  return new HeadgateError(
    'ERR_HEADGATE_STORE_UNAVAILABLE',
    `redis: not asked, because ${node === '' ? 'it' : node} has stopped answering; a probe is looking for it`,
  )
}
