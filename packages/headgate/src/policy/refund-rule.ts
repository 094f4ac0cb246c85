/**
 * When a response gives its request's charge back, and how often. A client chooses the status of its responses more often
 * than it seems: `If-None-Match: *` makes any file a 304. So what comes back is bounded, by limits of its own.
 */
import { isLimit, type Limit, MAX_UNITS } from '../algorithms/algorithm.js'
import { parseDurationUs } from '../algorithms/durations.js'
import { invalidOption } from '../errors/headgate-error.js'
import { commonStatuses, type Statuses } from './statuses.js'

/** Units in any window: `'100/1m'`. */
export type Rate = `${number}/${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** How much may come back: what a limit admits, or `limit`, as much as was charged: what its limits admit, once more. */
export type RefundBound = Limit | 'limit'

/** The same in a policy file and in options. */
export type WrittenBound = Rate | 'limit'

/** The statuses that give a charge back, and the bounds of what they give back, which all hold. */
export interface RefundRule<Bound = RefundBound> {
  readonly statuses: readonly Statuses[]
  readonly atMost: readonly Bound[]
}

/** Returns what both rules give back. */
export function commonRefunds(one: RefundRule, other: RefundRule): RefundRule {
  return {
    statuses: commonStatuses(one.statuses, other.statuses),
    atMost: [...new Set([...one.atMost, ...other.atMost])],
  }
}

export const RATE = /^([1-9]\d{0,9})\/(\d{1,12}(?:\.\d{1,6})?(?:ms|s|m|h|d))$/
export const RATE_WORDS = `a rate such as 100/1m, of 1 to ${MAX_UNITS} units`

/** Parses a rate. Rejects anything else, naming `field`. */
export function parseRate(
  rate: unknown,
  field: string,
): { readonly limit: number; readonly windowUs: number } {
  const [, units, duration] = (typeof rate === 'string' ? RATE.exec(rate) : null) ?? []
  const limit = Number(units)
  if (duration === undefined || limit > MAX_UNITS) {
    throw invalidOption(field, RATE_WORDS, rate)
  }
  return { limit, windowUs: parseDurationUs(duration, field) }
}

/** Validates a bound as it is written in a policy file or an option. */
export function parseWrittenBound(bound: unknown, field: string): WrittenBound {
  if (bound !== 'limit') parseRate(bound, field)
  return bound as WrittenBound
}

/** Validates a bound of a refund. */
export function parseRefundBound(bound: unknown): RefundBound {
  if (bound === 'limit' || isLimit(bound)) return bound
  throw invalidOption('atMost', "a limit, or 'limit'", bound)
}
