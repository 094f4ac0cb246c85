import { HeadgateError, show, unexpected } from './errors.js'
import type { FailureMode } from './store/guard/failure.js'

/** What is asked: a policy or a tier by its name, and for what. */
export type Ask<PolicyName extends string, TierName extends string> = (
  | { readonly policy: PolicyName; readonly tier?: undefined }
  | { readonly tier: TierName; readonly policy?: undefined }
) & {
  /** What is asked for; `global` is one budget for everything. */
  readonly scope?: string
  /** Units the request takes. Default 1. */
  readonly cost?: number
  /** What decides when the store cannot be asked; the store's own default (`local`) when left out. */
  readonly onStoreFailure?: FailureMode
}

const MAX_COST = 2 ** 32 - 1

export function parseScope(scope: unknown): string {
  if (scope === undefined || scope === null) return 'global'
  if (typeof scope === 'string' && scope !== '') return scope
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'scope', 'a non-empty string', scope)
}

export function parseFailureMode(mode: unknown): FailureMode {
  if (mode === 'local' || mode === 'open' || mode === 'closed') return mode
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'onStoreFailure', "'local', 'open' or 'closed'", mode)
}

/** What an ask names, for a message. */
export function namesOf(ask: unknown): unknown {
  if (typeof ask !== 'object' || ask === null) return ask
  return 'policy' in ask && 'tier' in ask ? 'both' : 'neither'
}

export function closedError(): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_CLOSED', 'limiter: expected an open limiter; it was closed')
}

export function parseCost(cost: unknown): number {
  if (typeof cost === 'number' && Number.isInteger(cost) && cost >= 0 && cost <= MAX_COST) return cost
  throw unexpected('ERR_HEADGATE_INVALID_COST', 'cost', `a whole number from 0 to ${MAX_COST}`, cost)
}

export function unknownName(
  kind: 'policy' | 'tier',
  got: unknown,
  known: ReadonlyMap<string, unknown>,
): HeadgateError {
  return new HeadgateError(
    kind === 'policy' ? 'ERR_HEADGATE_UNKNOWN_POLICY' : 'ERR_HEADGATE_UNKNOWN_TIER',
    `${kind}: expected one of ${[...known.keys()].join(', ') || 'none'}; got ${show(got)}`,
  )
}
