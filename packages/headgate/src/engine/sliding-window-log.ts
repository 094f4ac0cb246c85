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

/** Entries oldest first from `head`; `baseTotal` is the running total just before the entry at `head`. */
export interface LogState {
  times: number[]
  totals: number[]
  head: number
  baseTotal: number
}

// Totals are 13 digits wide in Redis; long before that is reached they are counted from zero again.
const MAX_TOTAL = 9_999_999_999_999
const COMPACT_AFTER = 64

function empty(): LogState {
  return { times: [], totals: [], head: 0, baseTotal: 0 }
}

/** Time never runs backwards for a key: a clock that stepped back waits at the newest entry. */
function effectiveNow(limit: LogLimit, state: LogState, nowUs: number): number {
  const lastUs = state.times.at(-1) ?? nowUs
  return lastUs > nowUs && !isForgotten(limit, state, nowUs) ? lastUs : nowUs
}

/** Entries more than a window ahead can only come from before the clock stepped back; they would lock the key. */
function isForgotten(limit: LogLimit, state: LogState, nowUs: number): boolean {
  return (state.times.at(-1) ?? nowUs) > nowUs + limit.windowUs
}

/** Index of the oldest entry still inside the window that ends at `atUs`. */
function firstLive(limit: LogLimit, state: LogState, atUs: number): number {
  const edgeUs = atUs - limit.windowUs
  let low = state.head
  let high = state.times.length
  // Mostly nothing has left since the last look.
  if (low < high && (state.times[low] as number) > edgeUs) return low
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((state.times[middle] as number) <= edgeUs) low = middle + 1
    else high = middle
  }
  return low
}

function totalBefore(state: LogState, index: number): number {
  return index > state.head ? (state.totals[index - 1] as number) : state.baseTotal
}

function lastTotal(state: LogState): number {
  return totalBefore(state, state.times.length)
}

function usedAt(limit: LogLimit, state: LogState, nowUs: number): number {
  if (isForgotten(limit, state, nowUs)) return 0
  const live = firstLive(limit, state, effectiveNow(limit, state, nowUs))
  return lastTotal(state) - totalBefore(state, live)
}

/** How long until `cost` fits if nobody else asks; 0 when it fits now. */
function waitUs(limit: LogLimit, state: LogState, cost: number, nowUs: number): number {
  if (cost > limit.limit) return NEVER
  if (usedAt(limit, state, nowUs) + cost <= limit.limit) return 0
  // The entry whose leaving makes room is the first with at least this running total.
  const neededTotal = lastTotal(state) + cost - limit.limit
  let low = firstLive(limit, state, effectiveNow(limit, state, nowUs))
  let high = state.times.length - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((state.totals[middle] as number) >= neededTotal) high = middle
    else low = middle + 1
  }
  return (state.times[low] as number) + limit.windowUs - nowUs
}

/** Writes the charge down and drops what has left the window; only for a cost that fits. Returns when it counts. */
function charge(limit: LogLimit, state: LogState, cost: number, nowUs: number): number {
  const forgotten = isForgotten(limit, state, nowUs)
  const atUs = effectiveNow(limit, state, nowUs)
  const live = forgotten ? state.times.length : firstLive(limit, state, atUs)
  append(state, live, cost, atUs)
  return atUs
}

/** Drops what is before `live` and adds an entry. */
function append(state: LogState, live: number, cost: number, atUs: number): void {
  dropBefore(state, live)
  if (lastTotal(state) + cost > MAX_TOTAL) countFromZero(state)
  const total = lastTotal(state) + cost
  if (state.times.length === 0) {
    // Most keys hold one entry. An array made with it takes a few bytes; one pushed to makes room for seventeen.
    state.times = [atUs]
    state.totals = [total]
  } else {
    state.times.push(atUs)
    state.totals.push(total)
  }
}

function dropBefore(state: LogState, index: number): void {
  state.baseTotal = totalBefore(state, index)
  state.head = index
  if (index === state.times.length) {
    state.times.length = 0
    state.totals.length = 0
    state.head = 0
    state.baseTotal = 0
  } else if (index >= COMPACT_AFTER && index * 2 >= state.times.length) {
    // Dropping at least half keeps the copying amortised: one move per entry ever written.
    state.times.splice(0, index)
    state.totals.splice(0, index)
    state.head = 0
  }
}

function countFromZero(state: LogState): void {
  for (let index = state.head; index < state.totals.length; index++) {
    state.totals[index] = (state.totals[index] as number) - state.baseTotal
  }
  state.baseTotal = 0
}

function remaining(limit: LogLimit, state: LogState, nowUs: number): number {
  return Math.max(0, limit.limit - usedAt(limit, state, nowUs))
}

/** How long until the whole limit is free again. */
function resetAfterUs(limit: LogLimit, state: LogState, nowUs: number): number {
  if (usedAt(limit, state, nowUs) === 0) return 0
  return (state.times.at(-1) as number) + limit.windowUs - nowUs
}

function take(limit: LogLimit, state: LogState, cost: number, nowUs: number, into: Admission): boolean {
  if ((state.times.at(-1) ?? nowUs) > nowUs) return false
  const live = firstLive(limit, state, nowUs)
  const left = limit.limit - (lastTotal(state) - totalBefore(state, live)) - cost
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
  if (isForgotten(limit, state, nowUs)) return 0
  const live = firstLive(limit, state, effectiveNow(limit, state, nowUs))
  let left = units
  let previousTotal = totalBefore(state, live)
  let originalPrevious = previousTotal
  let kept = live
  for (let index = live; index < state.times.length; index++) {
    const original = state.totals[index] as number
    const timeUs = state.times[index] as number
    const cost = original - originalPrevious
    // An entry without cost marks a reset: what was charged in its microsecond may be of the former life.
    if (cost === 0 && timeUs === chargedAtUs) return 0
    const back = chargedAtUs === null || timeUs === chargedAtUs ? Math.min(left, cost) : 0
    originalPrevious = original
    left -= back
    if (back === cost && cost > 0) continue
    previousTotal += cost - back
    state.times[kept] = timeUs
    state.totals[kept] = previousTotal
    kept++
  }
  if (left === units) return 0
  state.times.length = kept
  state.totals.length = kept
  // The newest entry may be gone, and with it the time below which this key does not go: what had left stays gone.
  dropBefore(state, live)
  return units - left
}

/** Leaves one entry without cost, before which nothing comes back, where anything was left to come back. */
function reset(limit: LogLimit, state: LogState, nowUs: number): void {
  const atUs = effectiveNow(limit, state, nowUs)
  const isLive = !isForgotten(limit, state, nowUs) && firstLive(limit, state, atUs) < state.times.length
  dropBefore(state, state.times.length)
  if (isLive) append(state, 0, 0, atUs)
}

function usedUp(limit: LogLimit, untilUs: number, nowUs: number): LogState {
  return { times: [Math.min(nowUs, untilUs - limit.windowUs)], totals: [limit.limit], head: 0, baseTotal: 0 }
}

/** The state matters for one window after it was written; catching up with a clock that stepped back comes on top. */
function keepForUs(limit: LogLimit, state: LogState, nowUs: number): number {
  return Math.max(0, (state.times.at(-1) ?? nowUs) - nowUs) + limit.windowUs
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
