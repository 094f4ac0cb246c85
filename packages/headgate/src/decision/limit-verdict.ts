import { NEVER, type Quota } from '../engine/limit.js'
import type { Check, Verdict } from '../engine/question.js'

/** The answer of one limit. */
export interface LimitVerdict {
  /** `<policy>.<limit id>`. */
  readonly name: string
  readonly allowed: boolean
  readonly limit: number
  readonly remaining: number
  readonly retryAfterMs: number | null
  readonly resetAfterMs: number
  readonly quota: Quota
}

/** A verdict as callers are told it. */
export function toLimitVerdict(check: Check, verdict: Verdict): LimitVerdict {
  return {
    name: check.name,
    allowed: verdict.allowed,
    limit: check.limit.limit,
    remaining: verdict.remaining,
    retryAfterMs: toWaitMs(verdict.retryAfterUs),
    resetAfterMs: toMs(verdict.resetAfterUs),
    quota: check.limit.quota,
  }
}

/** The policy of a limit's name, `<policy>.<limit id>`. */
export function policyOf(name: string): string {
  return name.slice(0, name.indexOf('.'))
}

/** Rounded up: a client that waits exactly this long must not be a microsecond early. */
export function toMs(us: number): number {
  return Math.ceil(us / 1000)
}

/** The same for a wait, which can be without an end. */
export function toWaitMs(retryAfterUs: number): number | null {
  return retryAfterUs === NEVER ? null : toMs(retryAfterUs)
}
