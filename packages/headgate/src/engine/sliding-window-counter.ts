/**
 * Sliding-window counter: two numbers stand for the log. Aligned windows are counted, and the previous one is taken
 * to have been evenly filled, so the part of it that still overlaps the sliding window counts.
 *
 *   used(now) = current + previous × (window − elapsed) ÷ window          admit when used + cost ≤ limit
 *
 * The estimate is rounded up, against the caller. It is continuous where windows meet.
 *
 * Invariant: at most `limit` in an aligned window, at most 2 × limit − 1 in any window (attained).
 */
import type { Admission, Algorithm } from './algorithm.js'
import { mulDivCeil, mulDivFloor } from './exact-fraction.js'
import { type CounterLimit, NEVER, roomBeyond } from './limit.js'

/** Units admitted in the window that began at `startUs`, and in the one before it; when it was last reset, or 0. */
export interface CounterState {
  startUs: number
  current: number
  previous: number
  resetUs: number
}

function empty(): CounterState {
  return { startUs: 0, current: 0, previous: 0, resetUs: 0 }
}

/**
 * The time the state is read at. A clock that stepped back waits at the start of the stored window, unless that lies
 * so far ahead that one unit could be denied for more than two windows: then the state counts as forgotten.
 */
function effectiveNow(limit: CounterLimit, state: CounterState, nowUs: number): number {
  return state.startUs > nowUs && !isForgotten(limit, state, nowUs) ? state.startUs : nowUs
}

function isForgotten(limit: CounterLimit, state: CounterState, nowUs: number): boolean {
  // Rounded up before it is taken away: what is left of a rounded difference can be a microsecond too much.
  return state.startUs - nowUs > limit.windowUs - Math.ceil(limit.windowUs / limit.limit)
}

export function windowStart(limit: CounterLimit, atUs: number): number {
  // Exact below 2^53 (see exact-fraction.ts), and several times faster than % on numbers beyond 32 bits.
  return Math.floor(atUs / limit.windowUs) * limit.windowUs
}

function currentAt(state: CounterState, startUs: number): number {
  return state.startUs === startUs ? state.current : 0
}

function previousAt(limit: CounterLimit, state: CounterState, startUs: number): number {
  if (state.startUs === startUs) return state.previous
  return state.startUs + limit.windowUs === startUs ? state.current : 0
}

/** The units of the previous window that still count when `overlapUs` of it is inside the sliding one. */
function fadedUnits(limit: CounterLimit, previous: number, overlapUs: number): number {
  return previous === 0 ? 0 : mulDivCeil(previous, overlapUs, limit.windowUs)
}

function usedAt(limit: CounterLimit, state: CounterState, nowUs: number): number {
  const atUs = effectiveNow(limit, state, nowUs)
  const startUs = windowStart(limit, atUs)
  const overlapUs = limit.windowUs - (atUs - startUs)
  return currentAt(state, startUs) + fadedUnits(limit, previousAt(limit, state, startUs), overlapUs)
}

/** How long until `cost` fits if nobody else asks; 0 when it fits now. */
function waitUs(limit: CounterLimit, state: CounterState, cost: number, nowUs: number): number {
  if (cost > limit.limit) return NEVER
  if (usedAt(limit, state, nowUs) + cost <= limit.limit) return 0
  const startUs = windowStart(limit, effectiveNow(limit, state, nowUs))
  const fitsAtUs = fitsAt(limit, startUs, currentAt(state, startUs), previousAt(limit, state, startUs), cost)
  return fitsAtUs - nowUs
}

/** When a cost that does not fit now will, after a window that began at `startUs` with these units. */
function fitsAt(
  limit: CounterLimit,
  startUs: number,
  current: number,
  previous: number,
  cost: number,
): number {
  const spare = limit.limit - current - cost
  // Either enough of the previous window slides out while this one lasts, or this one must become the previous.
  if (spare >= 0) return startUs + fadeUs(limit, previous, spare)
  return startUs + limit.windowUs + fadeUs(limit, current, limit.limit - cost)
}

/** Elapsed time into a window at which at most `spare` of `previous` units still count. */
function fadeUs(limit: CounterLimit, previous: number, spare: number): number {
  if (previous <= spare) return 0
  return limit.windowUs - mulDivFloor(spare, limit.windowUs, previous)
}

/** Writes the charge down; only for a cost that fits. Returns the time it counts at. */
function charge(limit: CounterLimit, state: CounterState, cost: number, nowUs: number): number {
  const atUs = effectiveNow(limit, state, nowUs)
  const startUs = windowStart(limit, atUs)
  const current = currentAt(state, startUs)
  state.previous = previousAt(limit, state, startUs)
  state.current = current + cost
  state.startUs = startUs
  return atUs
}

function remaining(limit: CounterLimit, state: CounterState, nowUs: number): number {
  return Math.max(0, limit.limit - usedAt(limit, state, nowUs))
}

/** How long until nothing counts any more: the current units fade over the next window. */
function resetAfterUs(limit: CounterLimit, state: CounterState, nowUs: number): number {
  const startUs = windowStart(limit, effectiveNow(limit, state, nowUs))
  if (currentAt(state, startUs) > 0) return startUs + 2 * limit.windowUs - nowUs
  return previousAt(limit, state, startUs) > 0 ? startUs + limit.windowUs - nowUs : 0
}

function take(
  limit: CounterLimit,
  state: CounterState,
  cost: number,
  nowUs: number,
  into: Admission,
): boolean {
  const startUs = windowStart(limit, nowUs)
  if (state.startUs > nowUs) return false
  const current = currentAt(state, startUs)
  const previous = previousAt(limit, state, startUs)
  const endUs = startUs + limit.windowUs
  const left = limit.limit - cost - current - fadedUnits(limit, previous, endUs - nowUs)
  if (left < 0) return false
  state.startUs = startUs
  state.previous = previous
  state.current = current + cost
  into.remaining = left
  into.resetAfterUs = endUs + limit.windowUs - nowUs
  into.nowUs = nowUs
  return true
}

function chargeBeyond(limit: CounterLimit, state: CounterState, units: number, nowUs: number): number {
  const charged = Math.min(units, roomBeyond(limit, usedAt(limit, state, nowUs)))
  if (charged > 0) charge(limit, state, charged, nowUs)
  return charged
}

/** Takes back up to `units` from the window of `chargedAtUs`, or from the oldest without it. Returns the units. */
function refund(
  limit: CounterLimit,
  state: CounterState,
  units: number,
  chargedAtUs: number | null,
  nowUs: number,
): number {
  if (chargedAtUs !== null && chargedAtUs <= state.resetUs) return 0
  const startUs = windowStart(limit, effectiveNow(limit, state, nowUs))
  let current = currentAt(state, startUs)
  let previous = previousAt(limit, state, startUs)
  const chargedStartUs = chargedAtUs === null ? null : windowStart(limit, chargedAtUs)
  let left = units
  if (chargedStartUs === null || chargedStartUs === startUs - limit.windowUs) {
    const back = Math.min(left, previous)
    previous -= back
    left -= back
  }
  if (chargedStartUs === null || chargedStartUs === startUs) {
    const back = Math.min(left, current)
    current -= back
    left -= back
  }
  if (left === units) return 0
  state.startUs = startUs
  state.current = current
  state.previous = previous
  return units - left
}

function reset(limit: CounterLimit, state: CounterState, nowUs: number): void {
  state.resetUs = Math.max(state.resetUs, effectiveNow(limit, state, nowUs))
  state.startUs = 0
  state.current = 0
  state.previous = 0
}

/** Units that count beyond the end of this window can only have been admitted in it. */
function usedUp(limit: CounterLimit, untilUs: number, nowUs: number): CounterState {
  const startUs = windowStart(limit, nowUs)
  const isOfThisWindow = untilUs > startUs + limit.windowUs
  const units = limit.limit
  return { startUs, current: isOfThisWindow ? units : 0, previous: isOfThisWindow ? 0 : units, resetUs: 0 }
}

/** The state matters until its window has been the previous one; catching up with a back-step comes on top. */
function keepForUs(limit: CounterLimit, state: CounterState, nowUs: number): number {
  return Math.max(0, state.startUs - nowUs) + 2 * limit.windowUs
}

export const slidingWindowCounterAlgorithm: Algorithm<CounterLimit, CounterState> = {
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
