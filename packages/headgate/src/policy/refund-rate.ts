import type { Limit } from '../algorithms/algorithm.js'
import { formatDurationUs } from '../algorithms/durations.js'
import { slidingWindowCounter } from '../algorithms/sliding-window-counter.js'
import { slidingWindowLog } from '../algorithms/sliding-window-log.js'
import { parseRate, type Rate, type RefundBound, type WrittenBound } from './refund-rule.js'

/** A log takes room for each unit. */
const MAX_LOGGED = 1_000
/** Rates are written in files and code, never by clients; this only bounds what reloads of a file leave behind. */
const MAX_KNOWN = 1_000
const known = new Map<Rate, Limit>()

/** Returns the bound that is written so, always the same object. */
export function boundOf(written: WrittenBound): RefundBound {
  if (written === 'limit') return written
  const seen = known.get(written)
  if (seen !== undefined) return seen
  const { limit, windowUs } = parseRate(written, 'atMost')
  const make = limit > MAX_LOGGED ? slidingWindowCounter : slidingWindowLog
  const made = make({ limit, window: `${windowUs / 1000}ms` })
  if (known.size < MAX_KNOWN) known.set(written, made)
  return made
}

/** Returns how a bound is written. */
export function writtenBound(bound: RefundBound): WrittenBound {
  if (bound === 'limit') return bound
  return `${bound.limit}/${formatDurationUs(bound.quota.windowUs)}` as Rate
}
