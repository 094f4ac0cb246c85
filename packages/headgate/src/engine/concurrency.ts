/**
 * Concurrency: a request takes a place when it begins and gives it back when it ends, and there are `limit` of them.
 *
 *   used(now) = places that are neither given back nor expired          admit when used + cost ≤ limit
 *
 * A place expires `holdFor` after it was taken or last renewed, so that those of a process that is lost come free by
 * themselves. When it was taken is also its name, and no two are taken in the same microsecond: whoever renews or gives
 * back a place says that time, and doing it twice is doing it once.
 *
 * Invariant: there are never more than `limit` places that have not expired. The wait of a denial is a hint: places
 * come free when requests end, which nobody knows, and at the latest when enough of them expire.
 */
import type { Algorithm } from './algorithm.js'
import { type ConcurrencyLimit, NEVER } from './limit.js'

/** The place that one request holds. */
interface Place {
  readonly takenUs: number
  expiresUs: number
  units: number
}

/** Places in the order of expiry, and the latest one taken before the last reset, or 0. */
export interface PlacesState {
  places: Place[]
  resetUs: number
}

/** The longest wait that is reported: most requests end long before their places would expire. */
const MOST_WAIT_US = 1_000_000
/** A place that expires later than this many times `holdFor` from now dates from before the clock stepped back. */
const MOST_HOLDS = 2

function empty(): PlacesState {
  return { places: [], resetUs: 0 }
}

/** From before the clock stepped back, it would be held forever. */
function isLive({ holdForUs }: ConcurrencyLimit, { expiresUs }: Place, nowUs: number): boolean {
  return expiresUs > nowUs && expiresUs <= nowUs + MOST_HOLDS * holdForUs
}

function usedAt(limit: ConcurrencyLimit, state: PlacesState, nowUs: number): number {
  let used = 0
  for (const place of state.places) if (isLive(limit, place, nowUs)) used += place.units
  return used
}

/** Returns 0 if it fits. Otherwise a hint: until enough places expire, and never longer than a second. */
function waitUs(limit: ConcurrencyLimit, state: PlacesState, cost: number, nowUs: number): number {
  if (cost > limit.limit) return NEVER
  let needed = usedAt(limit, state, nowUs) + cost - limit.limit
  if (needed <= 0) return 0
  for (const place of state.places) {
    if (!isLive(limit, place, nowUs)) continue
    needed -= place.units
    if (needed <= 0) return Math.min(MOST_WAIT_US, place.expiresUs - nowUs)
  }
  return MOST_WAIT_US
}

/** Takes the places, for a cost that fits. Returns when they were taken, which is their name. */
function charge(limit: ConcurrencyLimit, state: PlacesState, cost: number, nowUs: number): number {
  dropDead(limit, state, nowUs)
  let takenUs = Math.max(nowUs, state.resetUs + 1)
  while (state.places.some(place => place.takenUs === takenUs)) takenUs++
  add(state, { takenUs, expiresUs: nowUs + limit.holdForUs, units: cost })
  return takenUs
}

function dropDead(limit: ConcurrencyLimit, state: PlacesState, nowUs: number): void {
  if (state.places.every(place => isLive(limit, place, nowUs))) return
  state.places = state.places.filter(place => isLive(limit, place, nowUs))
}

/** The last one taken is usually the last to expire. */
function add(state: PlacesState, place: Place): void {
  let index = state.places.length
  while (index > 0 && isBefore(place, state.places[index - 1] as Place)) index--
  state.places.splice(index, 0, place)
}

function isBefore(one: Place, other: Place): boolean {
  return one.expiresUs < other.expiresUs || (one.expiresUs === other.expiresUs && one.takenUs < other.takenUs)
}

function remaining(limit: ConcurrencyLimit, state: PlacesState, nowUs: number): number {
  return Math.max(0, limit.limit - usedAt(limit, state, nowUs))
}

/** Returns how long until all places are free if nobody gives one back or renews it. */
function resetAfterUs(limit: ConcurrencyLimit, state: PlacesState, nowUs: number): number {
  const last = state.places.findLast(place => isLive(limit, place, nowUs))
  return last === undefined ? 0 : last.expiresUs - nowUs
}

/** Gives back up to `units` taken at `takenUs`, or of the first to expire without it. Returns how many. */
function refund(
  limit: ConcurrencyLimit,
  state: PlacesState,
  units: number,
  takenUs: number | null,
  nowUs: number,
): number {
  let left = units
  for (const place of state.places) {
    if (!isLive(limit, place, nowUs) || (takenUs !== null && place.takenUs !== takenUs)) continue
    const back = Math.min(left, place.units)
    place.units -= back
    left -= back
  }
  if (left < units) state.places = state.places.filter(place => place.units > 0)
  return units - left
}

/**
 * Holds what was taken at `takenUs` for another `holdFor` from now. A place that is gone, because it expired or the
 * store lost it, is taken again if there is room, because its request is still in flight. Returns whether it is
 * held.
 */
export function renew(
  limit: ConcurrencyLimit,
  state: PlacesState,
  units: number,
  takenUs: number,
  nowUs: number,
): boolean {
  dropDead(limit, state, nowUs)
  const index = state.places.findIndex(place => place.takenUs === takenUs)
  const [held] = index < 0 ? [] : state.places.splice(index, 1)
  if (held === undefined && usedAt(limit, state, nowUs) + units > limit.limit) return false
  add(state, { takenUs, expiresUs: nowUs + limit.holdForUs, units: held?.units ?? units })
  return true
}

/** Nothing taken before is given back afterwards: no new place gets the name of an old one. */
function reset(_limit: ConcurrencyLimit, state: PlacesState): void {
  for (const { takenUs } of state.places) state.resetUs = Math.max(state.resetUs, takenUs)
  state.places = []
}

function usedUp(limit: ConcurrencyLimit, untilUs: number, nowUs: number): PlacesState {
  const expiresUs = Math.min(untilUs, nowUs + MOST_HOLDS * limit.holdForUs)
  return { places: [{ takenUs: 0, expiresUs, units: limit.limit }], resetUs: 0 }
}

function keepForUs(limit: ConcurrencyLimit): number {
  return MOST_HOLDS * limit.holdForUs
}

export const concurrencyAlgorithm: Algorithm<ConcurrencyLimit, PlacesState> = {
  empty,
  waitUs,
  charge,
  remaining,
  resetAfterUs,
  // The name of a place may differ from the current time, and an admission has no field for it.
  take: () => false,
  // The number in flight is a fact and cannot be charged.
  chargeBeyond: () => 0,
  refund,
  reset,
  usedUp,
  keepForUs,
}
