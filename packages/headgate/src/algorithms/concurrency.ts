/**
 * Concurrency: a request takes a permit when it begins and gives it back when it ends, and there are `limit` of them.
 *
 *   used(now) = permits that are neither given back nor expired          admit when used + cost ≤ limit
 *
 * A permit expires `holdFor` after it was taken or last renewed, so that those of a process that is lost come free by
 * themselves. When it was taken is also its name, and no two are taken in the same microsecond: whoever renews or gives
 * back a permit says that time, and doing it twice is doing it once.
 *
 * Invariant: there are never more than `limit` permits that have not expired. The wait of a denial is a hint: permits
 * come free when requests end, which nobody knows, and at the latest when enough of them expire.
 */
import { unexpected } from '../errors/headgate-error.js'
import { type Algorithm, type Limit, NEVER, NOT_CHARGED, type Outcome } from './algorithm.js'
import { type Duration, durationOption, formatDurationUs, parseDurationUs } from './durations.js'
import { mulDivFloor } from './exact-fraction.js'
import {
  limitId,
  NAME_FIELD,
  type Named,
  namingOf,
  parseKnown,
  parseWhole,
  resized,
} from './limit-options.js'
import { ObjectRows } from './rows.js'

/** A limit on how many are in flight at once. */
export interface ConcurrencyLimit extends Limit {
  /** A permit that is not renewed is freed after this time. */
  readonly holdForUs: number
}

export interface ConcurrencyOptions extends Named {
  /** Requests in flight at once; 0 is a ban. */
  readonly limit: number
  /**
   * A permit frees itself after this time unless it is renewed, so that a lost process does not keep it. Default 30
   * s.
   */
  readonly holdFor?: Duration
}

/** Each permit is an entry in Redis. */
export const MAX_PERMITS = 100_000
const DEFAULT_HOLD_FOR = '30s'
const LEAST_HOLD_US = 1_000_000
const MOST_HOLD_US = 3_600_000_000
// The hold time is not part of the id, so that changing it keeps the permits taken.
const KIND = 'concurrency'
const FIELDS = {
  limit: {
    kind: 'permits',
    text: 'Requests in progress at once, whatever they cost; 0 is a ban.',
    required: true,
  },
  holdFor: {
    kind: 'duration',
    text: 'How long a permit is kept after its process has died, from `1s` to `1h`. Default `30s`.',
  },
  name: NAME_FIELD,
} as const
/** Enough for a probe, and soon forgotten. */
const PROBE = { limit: 1_000_000, holdForUs: 1_000_000 }
/** The longest wait that is reported: most requests end long before their permits would expire. */
const MOST_WAIT_US = 1_000_000
/** A permit that expires later than this many times `holdFor` from now dates from before the clock stepped back. */
const MOST_HOLDS = 2

function parse(options: unknown): ConcurrencyLimit {
  const known = parseKnown<ConcurrencyOptions>(options, 'concurrency', Object.keys(FIELDS))
  const limit = parseWhole(known.limit, 'limit', 0, MAX_PERMITS)
  const holdForUs = parseHoldForUs(known.holdFor ?? DEFAULT_HOLD_FOR)
  return Object.freeze({
    algorithm: concurrencyAlgorithm,
    id: limitId(known.name, KIND),
    limit,
    holdForUs,
    quota: Object.freeze({ limit, windowUs: holdForUs, burst: null, unit: 'concurrent-requests' }),
  })
}

function parseHoldForUs(value: Duration): number {
  const us = parseDurationUs(value, 'holdFor')
  if (us >= LEAST_HOLD_US && us <= MOST_HOLD_US) return us
  throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'holdFor', 'a duration from 1s to 1h', value)
}

/** A permit cannot be split: a share below one is one. */
function share(limit: ConcurrencyLimit, processes: number): ConcurrencyLimit {
  if (processes <= 1 || limit.limit === 0) return limit
  return { ...limit, limit: Math.max(1, Math.floor(limit.limit / processes)) }
}

/** The permit that one request holds. */
interface Permit {
  readonly takenUs: number
  expiresUs: number
  units: number
}

/** Permits in the order of expiry, and the latest one taken before the last reset, or 0. */
export interface PermitsState {
  permits: Permit[]
  resetUs: number
}

function empty(): PermitsState {
  return { permits: [], resetUs: 0 }
}

/** From before the clock stepped back, it would be held forever. */
function isLive({ holdForUs }: ConcurrencyLimit, { expiresUs }: Permit, nowUs: number): boolean {
  return expiresUs > nowUs && expiresUs <= nowUs + MOST_HOLDS * holdForUs
}

function usedAt(limit: ConcurrencyLimit, state: PermitsState, nowUs: number): number {
  let used = 0
  for (const permit of state.permits) if (isLive(limit, permit, nowUs)) used += permit.units
  return used
}

function decide(
  limit: ConcurrencyLimit,
  state: PermitsState,
  units: number,
  nowUs: number,
  mayCharge: boolean,
  out: Outcome,
): void {
  let used = 0
  let lastExpiresUs = nowUs
  for (const permit of state.permits) {
    if (!isLive(limit, permit, nowUs)) continue
    used += permit.units
    lastExpiresUs = permit.expiresUs
  }
  const left = limit.limit - used - units
  if (left >= 0 && mayCharge && units > 0) {
    out.chargedAtUs = take(limit, state, units, nowUs)
    out.waitUs = 0
    out.remaining = left
    out.resetAfterUs = Math.max(lastExpiresUs - nowUs, limit.holdForUs)
    return
  }
  out.waitUs = left >= 0 ? 0 : hintUs(limit, state, units, nowUs, -left)
  out.remaining = Math.max(0, limit.limit - used)
  out.resetAfterUs = lastExpiresUs - nowUs
  out.chargedAtUs = NOT_CHARGED
}

/** Until enough permits expire for units that are `excess` too many now, and never longer than a second. */
function hintUs(
  limit: ConcurrencyLimit,
  state: PermitsState,
  units: number,
  nowUs: number,
  excess: number,
): number {
  if (units > limit.limit) return NEVER
  let needed = excess
  for (const permit of state.permits) {
    if (!isLive(limit, permit, nowUs)) continue
    needed -= permit.units
    if (needed <= 0) return Math.min(MOST_WAIT_US, permit.expiresUs - nowUs)
  }
  return MOST_WAIT_US
}

/** Takes permits for which there is room. Returns when they were taken, which is their name. */
function take(limit: ConcurrencyLimit, state: PermitsState, units: number, nowUs: number): number {
  dropDead(limit, state, nowUs)
  let takenUs = Math.max(nowUs, state.resetUs + 1)
  while (state.permits.some(permit => permit.takenUs === takenUs)) takenUs++
  add(state, { takenUs, expiresUs: nowUs + limit.holdForUs, units })
  return takenUs
}

function dropDead(limit: ConcurrencyLimit, state: PermitsState, nowUs: number): void {
  if (state.permits.every(permit => isLive(limit, permit, nowUs))) return
  state.permits = state.permits.filter(permit => isLive(limit, permit, nowUs))
}

/** The last one taken is usually the last to expire. */
function add(state: PermitsState, permit: Permit): void {
  let index = state.permits.length
  while (index > 0 && isBefore(permit, state.permits[index - 1] as Permit)) index--
  state.permits.splice(index, 0, permit)
}

function isBefore(one: Permit, other: Permit): boolean {
  return one.expiresUs < other.expiresUs || (one.expiresUs === other.expiresUs && one.takenUs < other.takenUs)
}

/**
 * Gives back up to `units` taken at `takenUs`, or of the first to expire without it. Returns how many. The number in
 * flight is a fact: nothing is charged beyond it.
 */
function refund(
  limit: ConcurrencyLimit,
  state: PermitsState,
  units: number,
  takenUs: number | null,
  nowUs: number,
): number {
  if (units < 0) return 0
  let left = units
  for (const permit of state.permits) {
    if (!isLive(limit, permit, nowUs) || (takenUs !== null && permit.takenUs !== takenUs)) continue
    const back = Math.min(left, permit.units)
    permit.units -= back
    left -= back
  }
  if (left < units) state.permits = state.permits.filter(permit => permit.units > 0)
  return units - left
}

/**
 * Holds what was taken at `takenUs` for another `holdFor` from now. A permit that is gone, because it expired or the
 * store lost it, is taken again if there is room, because its request is still in flight. Returns whether it is
 * held.
 */
function renew(
  limit: ConcurrencyLimit,
  state: PermitsState,
  units: number,
  takenUs: number,
  nowUs: number,
): boolean {
  dropDead(limit, state, nowUs)
  const index = state.permits.findIndex(permit => permit.takenUs === takenUs)
  const [held] = index < 0 ? [] : state.permits.splice(index, 1)
  if (held === undefined && usedAt(limit, state, nowUs) + units > limit.limit) return false
  add(state, { takenUs, expiresUs: nowUs + limit.holdForUs, units: held?.units ?? units })
  return true
}

/** Nothing taken before is given back afterwards: no new permit gets the name of an old one. */
function reset(_limit: ConcurrencyLimit, state: PermitsState): void {
  for (const { takenUs } of state.permits) state.resetUs = Math.max(state.resetUs, takenUs)
  state.permits = []
}

function usedUp(limit: ConcurrencyLimit, untilUs: number, nowUs: number): PermitsState {
  const expiresUs = Math.min(untilUs, nowUs + MOST_HOLDS * limit.holdForUs)
  return { permits: [{ takenUs: 0, expiresUs, units: limit.limit }], resetUs: 0 }
}

export const concurrencyAlgorithm: Algorithm<ConcurrencyLimit, PermitsState> = {
  name: 'concurrency',
  fields: FIELDS,
  sample: { limit: 1 },
  parse,
  optionsOf: limit => ({
    algorithm: 'concurrency',
    limit: limit.limit,
    holdFor: durationOption(limit.holdForUs),
    ...namingOf(limit, KIND),
  }),
  describe: ({ limit, holdForUs }) =>
    `concurrency ${limit} in flight at once, each for ${formatDurationUs(holdForUs)} unless renewed`,
  resize: (limit, units, factor) => Object.freeze(resized(limit, units, factor)),
  share,
  part: (limit, part, of) => ({ ...limit, limit: mulDivFloor(limit.limit, part, of) }),
  probe: limit => ({ ...limit, ...PROBE }),
  // Permits of requests in flight cannot be taken in advance.
  lease: null,
  // Nothing is known of how long requests take.
  mostIn: () => Number.POSITIVE_INFINITY,
  ratePerSecond: () => Number.POSITIVE_INFINITY,
  isCoveredBy: () => false,
  empty,
  decide,
  refund,
  refilled: () => 0,
  reset,
  usedUp,
  keepForUs: limit => MOST_HOLDS * limit.holdForUs,
  // Counted whatever they look like: to a limit with a shorter `holdFor` they seem to be of another time.
  isUncharged: (_limit, state) => state.permits.length === 0,
  renew,
  holdForUs: limit => limit.holdForUs,
  rows: () => new ObjectRows(empty),
  wire: {
    kind: 'permits',
    numbers: limit => [limit.limit, limit.holdForUs],
    mostLeft: () => null,
    charged() {},
    /** `freesUs`: when enough permits will have expired, or −1; `takenUs`: the name of the permits that were taken. */
    decided(limit, state, units, nowUs, isCharged, out) {
      const [used, lastUs, freesUs, takenUs] = state.map(Number) as [number, number, number, number]
      const left = limit.limit - used - units
      const hintUs = freesUs < 0 ? MOST_WAIT_US : Math.min(MOST_WAIT_US, freesUs - nowUs)
      out.waitUs = left >= 0 ? 0 : units > limit.limit ? NEVER : hintUs
      out.remaining = Math.max(0, isCharged ? left : limit.limit - used)
      out.resetAfterUs = isCharged ? Math.max(lastUs - nowUs, limit.holdForUs) : lastUs - nowUs
      out.chargedAtUs = isCharged ? takenUs : NOT_CHARGED
    },
  },
  toJSON() {
    return this.name
  },
}

/**
 * Creates a limit on requests in flight at once, over all processes. A request takes one permit whatever it costs.
 *
 * @example
 * concurrency({ limit: 5, holdFor: '1m' })
 */
export function concurrency(options: ConcurrencyOptions): ConcurrencyLimit {
  return parse(options)
}
