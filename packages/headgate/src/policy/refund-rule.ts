/**
 * When a response gives its request's charge back, and how often. A client chooses the status of its responses more often
 * than it seems: `If-None-Match: *` makes any file a 304. So what comes back is bounded, by limits of its own.
 */
import type { Limit } from '../algorithms/algorithm.js'
import { MAX_UNITS } from '../algorithms/algorithm.js'
import { formatDurationUs, parseDurationUs } from '../algorithms/durations.js'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import { unexpected } from '../errors/headgate-error.js'
import { commonStatuses, type Statuses } from './statuses.js'

/** Units in any window: `'100/1m'`. */
export type Rate = `${number}/${number}${'ms' | 's' | 'm' | 'h' | 'd'}`

/** How much may come back: a rate, or `limit`, as much as was charged: what the limits admit, once more. */
export type RefundBound = Rate | 'limit'

/** The statuses that give a charge back, and the bounds of what they give back, which all hold. */
export interface RefundRule {
  readonly statuses: readonly Statuses[]
  readonly atMost: readonly RefundBound[]
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
/** A log takes room for each unit. */
const MAX_LOGGED = 1_000
/** Rates are written in files and code, never by clients; this only bounds what reloads of a file leave behind. */
const MAX_KNOWN = 1_000
const known = new Map<string, Limit>()

/** Returns the limit of a rate, the same object each time. Rejects anything else, naming `field`. */
export function parseRate(rate: unknown, field: string): Limit {
  const seen = typeof rate === 'string' ? known.get(rate) : undefined
  if (seen !== undefined) return seen
  const [, units, duration] = (typeof rate === 'string' ? RATE.exec(rate) : null) ?? []
  const limit = Number(units)
  if (duration === undefined || limit > MAX_UNITS) {
    throw unexpected('ERR_HEADGATE_INVALID_OPTION', field, RATE_WORDS, rate)
  }
  const windowUs = parseDurationUs(duration, field)
  const make = limit > MAX_LOGGED ? slidingWindowCounter : slidingWindowLog
  // Two rates have two states, even if they are for one policy.
  const made = make({
    limit,
    window: `${windowUs / 1000}ms`,
    name: `${limit}-in-${formatDurationUs(windowUs)}`,
  })
  if (known.size < MAX_KNOWN) known.set(String(rate), made)
  return made
}

/** Validates the bounds of a refund. */
export function parseRefundBound(bound: unknown, field: string): RefundBound {
  if (bound !== 'limit') parseRate(bound, field)
  return bound as RefundBound
}
