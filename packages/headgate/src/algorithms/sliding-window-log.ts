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
import { defineAlgorithm, NEVER, NOT_CHARGED, type Outcome } from './algorithm.js'
import { formatDurationUs } from './durations.js'
import { counted, parseKnown, roomBeyond } from './limit-options.js'
import { ListedLog, type LogState, logRows } from './log-rows.js'
import {
  parseWindow,
  WINDOW_FIELDS,
  type WindowLimit,
  type WindowOptions,
  windowLeasing,
  windowNumbers,
  windowWords,
  writtenWindow,
} from './window.js'

export type LogLimit = WindowLimit

function parse(options: unknown): LogLimit {
  const known = parseKnown<WindowOptions>(options, 'slidingWindowLog', Object.keys(WINDOW_FIELDS))
  const numbers = parseWindow(known)
  return Object.freeze({
    algorithm: slidingWindowLogAlgorithm,
    ...counted(known, kindOf(numbers.windowUs)),
    ...numbers,
  })
}

function kindOf(windowUs: number): string {
  return `log-${formatDurationUs(windowUs)}`
}

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

function decide(
  limit: LogLimit,
  state: LogState,
  units: number,
  nowUs: number,
  mayCharge: boolean,
  out: Outcome,
): void {
  const lastUs = lastTime(state, nowUs)
  // As effectiveNow and liveAt, which would each look for the newest entry again.
  const isOfFormerTime = lastUs > nowUs + limit.windowUs
  const atUs = lastUs > nowUs && !isOfFormerTime ? lastUs : nowUs
  const live = isOfFormerTime ? state.end : firstLive(limit, state, atUs)
  const used = unitsFrom(state, live)
  const left = limit.limit - used - units
  if (left >= 0 && mayCharge && units > 0) {
    append(state, live, units, atUs)
    out.waitUs = 0
    out.remaining = left
    out.resetAfterUs = atUs + limit.windowUs - nowUs
    out.chargedAtUs = atUs
    return
  }
  out.waitUs = left >= 0 ? 0 : fitsAt(limit, state, live, units, -left) - nowUs
  out.remaining = Math.max(0, limit.limit - used)
  out.resetAfterUs = used === 0 ? 0 : lastUs + limit.windowUs - nowUs
  out.chargedAtUs = NOT_CHARGED
}

/** When units fit that are `excess` too many now: once the first entry has left up to which there are so many. */
function fitsAt(limit: LogLimit, state: LogState, live: number, units: number, excess: number): number {
  if (units > limit.limit) return NEVER
  const { times, totals } = state
  const beforeLive = totalBefore(state, live)
  let low = live
  let high = state.end - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if (unitsBetween(beforeLive, totals[middle] as number) >= excess) high = middle
    else low = middle + 1
  }
  return (times[low] as number) + limit.windowUs
}

/** Drops what is before `live` and adds an entry. */
function append(state: LogState, live: number, cost: number, atUs: number): void {
  const total = (totalBefore(state, state.end) + cost) >>> 0
  if (live > state.first) state.dropBefore(live)
  state.append(atUs, total)
}

/** Charges units that were used already, as far as there is room. */
function chargeBeyond(limit: LogLimit, state: LogState, units: number, nowUs: number): void {
  const live = liveAt(limit, state, nowUs)
  const charged = Math.min(units, roomBeyond(limit, unitsFrom(state, live)))
  if (charged > 0) append(state, live, charged, effectiveNow(limit, state, nowUs))
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
  if (units < 0) {
    chargeBeyond(limit, state, -units, nowUs)
    return 0
  }
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

export const slidingWindowLogAlgorithm = /* @__PURE__ */ defineAlgorithm<LogLimit, LogState>(() => ({
  name: 'sliding-window-log',
  fields: WINDOW_FIELDS,
  sample: { limit: 1, window: '1m' },
  parse,
  optionsOf: limit => writtenWindow(limit, kindOf(limit.windowUs)),
  describe: windowWords,
  ...windowNumbers,
  // Grants count for window + TTL: what is spent in any window ≤ what is granted in window + TTL ≤ limit.
  lease: {
    ...windowLeasing,
    strict: (limit, lease) => ({ ...limit, lease, windowUs: limit.windowUs + lease.ttlUs }),
  },
  empty,
  decide,
  refund,
  reset,
  usedUp,
  keepForUs,
  isUncharged: (limit, state, nowUs) => usedAt(limit, state, nowUs) === 0,
  rows: logRows,
  wire: {
    kind: 'log',
    numbers: limit => [limit.limit, limit.windowUs],
    mostLeft: limit => limit.limit,
    charged(limit, left, nowUs, out) {
      out.waitUs = 0
      out.remaining = left
      out.resetAfterUs = limit.windowUs
      out.chargedAtUs = nowUs
    },
    /** `leavesUs`: when the entry was written whose leaving makes room. */
    decided(limit, state, units, nowUs, isCharged, out) {
      const [used, lastUs, leavesUs] = state.map(Number) as [number, number, number]
      const left = limit.limit - used - (isCharged ? units : 0)
      const fits = limit.limit - used - units >= 0
      out.waitUs = fits ? 0 : units > limit.limit ? NEVER : leavesUs + limit.windowUs - nowUs
      out.remaining = Math.max(0, left)
      const newestUs = isCharged ? Math.max(lastUs, nowUs) : lastUs
      out.resetAfterUs = used === 0 && !isCharged ? 0 : newestUs + limit.windowUs - nowUs
      out.chargedAtUs = isCharged ? newestUs : NOT_CHARGED
    },
  },
  toJSON() {
    return this.name
  },
}))

/**
 * Creates a limit that admits at most `limit` in any window, exactly. Stores every request of the window.
 *
 * @example
 * slidingWindowLog({ limit: 100, window: '1m' })
 */
export function slidingWindowLog(options: WindowOptions): LogLimit {
  return parse(options)
}
