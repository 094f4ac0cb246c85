/**
 * Sliding-window log: remember when each unit was admitted, and count those of the last window.
 *
 *   used(now) = units admitted in (now − window, now]          admit when used + cost ≤ limit
 *
 * Every entry carries the running total of units up to and with itself, so the use of any window is one subtraction
 * and a request of cost 1,000 is one entry, not a thousand. An entry written at t leaves the window at t + window.
 *
 * Invariant: the cost admitted in any window, wherever it starts, is at most `limit`, exactly.
 */
import type { Admission, Algorithm } from './algorithm.js'
import { type LogLimit, NEVER, roomBeyond } from './limit.js'
import { ListedLog, type LogState } from './log-state.js'

function empty(): LogState {
  return new ListedLog()
}

/** The time of the newest entry, or `nowUs` where there is none. */
function lastTime(state: LogState, nowUs: number): number {
  const { end } = state
  return end > state.first ? (state.times[end - 1] as number) : nowUs
}

/**
 * Time never runs backwards for a key: a clock that stepped back waits at the newest entry. Entries more than a window
 * ahead can only come from before such a step; they would lock the key, so they do not count.
 */
function effectiveNow(limit: LogLimit, state: LogState, nowUs: number): number {
  const lastUs = lastTime(state, nowUs)
  return lastUs > nowUs && lastUs <= nowUs + limit.windowUs ? lastUs : nowUs
}

/** Index of the oldest entry that counts at `nowUs`. */
function liveAt(limit: LogLimit, state: LogState, nowUs: number): number {
  const lastUs = lastTime(state, nowUs)
  if (lastUs > nowUs + limit.windowUs) return state.end
  return firstLive(limit, state, Math.max(lastUs, nowUs))
}

/** Index of the oldest entry still inside the window that ends at `atUs`. */
function firstLive(limit: LogLimit, state: LogState, atUs: number): number {
  const edgeUs = atUs - limit.windowUs
  const { times, first, end } = state
  // Mostly nothing has left since the last look, or little: steps that double find the end of that.
  let step = 1
  let low = first
  while (low + step <= end && (times[low + step - 1] as number) <= edgeUs) {
    low += step
    step *= 2
  }
  if (step === 1) return first
  let high = Math.min(end, low + step - 1)
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((times[middle] as number) <= edgeUs) low = middle + 1
    else high = middle
  }
  return low
}

function totalBefore(state: LogState, index: number): number {
  return index > state.first ? (state.totals[index - 1] as number) : state.baseTotal
}

/** Units of the entries from `live` on. */
function unitsFrom(state: LogState, live: number): number {
  return unitsBetween(totalBefore(state, live), totalBefore(state, state.end))
}

/** The units that took one running total to the other, which may have passed 2^32 on the way. */
function unitsBetween(total: number, laterTotal: number): number {
  return (laterTotal - total) >>> 0
}

function usedAt(limit: LogLimit, state: LogState, nowUs: number): number {
  return unitsFrom(state, liveAt(limit, state, nowUs))
}

/** How long until `cost` fits if nobody else asks; 0 when it fits now. */
function waitUs(limit: LogLimit, state: LogState, cost: number, nowUs: number): number {
  if (cost > limit.limit) return NEVER
  let low = liveAt(limit, state, nowUs)
  const excess = unitsFrom(state, low) + cost - limit.limit
  if (excess <= 0) return 0
  // The entry whose leaving makes room is the first up to which there are at least that many units.
  let high = state.end - 1
  const { times, totals } = state
  const beforeLive = totalBefore(state, low)
  while (low < high) {
    const middle = (low + high) >>> 1
    if (unitsBetween(beforeLive, totals[middle] as number) >= excess) high = middle
    else low = middle + 1
  }
  return (times[low] as number) + limit.windowUs - nowUs
}

/** Writes the charge down and drops what has left the window; only for a cost that fits. Returns when it counts. */
function charge(limit: LogLimit, state: LogState, cost: number, nowUs: number): number {
  const atUs = effectiveNow(limit, state, nowUs)
  append(state, liveAt(limit, state, nowUs), cost, atUs)
  return atUs
}

/** Drops what is before `live` and adds an entry. */
function append(state: LogState, live: number, cost: number, atUs: number): void {
  const total = (totalBefore(state, state.end) + cost) >>> 0
  if (live > state.first) state.dropBefore(live)
  state.append(atUs, total)
}

function remaining(limit: LogLimit, state: LogState, nowUs: number): number {
  return Math.max(0, limit.limit - usedAt(limit, state, nowUs))
}

/** How long until the whole limit is free again. */
function resetAfterUs(limit: LogLimit, state: LogState, nowUs: number): number {
  if (usedAt(limit, state, nowUs) === 0) return 0
  return lastTime(state, nowUs) + limit.windowUs - nowUs
}

function take(limit: LogLimit, state: LogState, cost: number, nowUs: number, into: Admission): boolean {
  if (lastTime(state, nowUs) > nowUs) return false
  const live = firstLive(limit, state, nowUs)
  const left = limit.limit - unitsFrom(state, live) - cost
  if (left < 0) return false
  append(state, live, cost, nowUs)
  into.remaining = left
  into.resetAfterUs = limit.windowUs
  into.nowUs = nowUs
  return true
}

function chargeBeyond(limit: LogLimit, state: LogState, units: number, nowUs: number): number {
  const charged = Math.min(units, roomBeyond(limit, usedAt(limit, state, nowUs)))
  if (charged > 0) charge(limit, state, charged, nowUs)
  return charged
}

/**
 * Takes back up to `units` charged at `chargedAtUs`, or the oldest ones without it; later totals are lowered.
 * Units that have left the window stay gone. Returns the units given back.
 */
function refund(
  limit: LogLimit,
  state: LogState,
  units: number,
  chargedAtUs: number | null,
  nowUs: number,
): number {
  const live = liveAt(limit, state, nowUs)
  let left = units
  let previousTotal = totalBefore(state, live)
  let originalPrevious = previousTotal
  let kept = live
  const { times, totals, end } = state
  for (let index = live; index < end; index++) {
    const original = totals[index] as number
    const timeUs = times[index] as number
    const cost = unitsBetween(originalPrevious, original)
    // An entry without cost marks a reset: what was charged in its microsecond may be of the former life.
    if (cost === 0 && timeUs === chargedAtUs) return 0
    const back = chargedAtUs === null || timeUs === chargedAtUs ? Math.min(left, cost) : 0
    originalPrevious = original
    left -= back
    if (back === cost && cost > 0) continue
    previousTotal = (previousTotal + cost - back) >>> 0
    times[kept] = timeUs
    totals[kept] = previousTotal
    kept++
  }
  if (left === units) return 0
  state.dropFrom(kept)
  // The newest entry may be gone, and with it the time below which this key does not go: what had left stays gone.
  state.dropBefore(live)
  return units - left
}

/** Leaves one entry without cost, before which nothing comes back, where anything was left to come back. */
function reset(limit: LogLimit, state: LogState, nowUs: number): void {
  const atUs = effectiveNow(limit, state, nowUs)
  const isLive = liveAt(limit, state, nowUs) < state.end
  state.dropBefore(state.end)
  if (isLive) append(state, state.first, 0, atUs)
}

function usedUp(limit: LogLimit, untilUs: number, nowUs: number): LogState {
  const state = empty()
  state.append(Math.min(nowUs, untilUs - limit.windowUs), limit.limit)
  return state
}

/** The state matters for one window after it was written; catching up with a clock that stepped back comes on top. */
function keepForUs(limit: LogLimit, state: LogState, nowUs: number): number {
  return Math.max(0, lastTime(state, nowUs) - nowUs) + limit.windowUs
}

export const slidingWindowLogAlgorithm: Algorithm<LogLimit, LogState> = {
  empty,
  waitUs,
  charge,
  remaining,
  resetAfterUs,
  take,
  chargeBeyond,
  refund,
  reset,
  usedUp,
  keepForUs,
}
