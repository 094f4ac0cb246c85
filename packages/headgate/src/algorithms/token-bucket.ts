/**
 * Token bucket: a bucket of `limit` tokens refilled at a steady rate; a request takes its cost or waits for it.
 *
 *   tokens(now) = min(capacity, tokens + elapsed × rate)          admit when tokens ≥ cost
 *
 * The state is what is missing, not what is left, so a changed capacity keeps what was used. It is counted in
 * micro-tokens: one token a second is exactly one micro-token a microsecond. The refill is rounded down, and only an
 * admission writes, so less than one micro-token in a million is ever lost to rounding.
 *
 * Invariant: the cost admitted in any τ seconds is at most capacity + rate × τ.
 */
import { unexpected } from '../errors/headgate-error.js'
import {
  type Algorithm,
  LEASE_PARTS,
  type Lease,
  type Limit,
  MAX_UNITS,
  NEVER,
  NOT_CHARGED,
  type Outcome,
} from './algorithm.js'
import { mulDivFloor } from './exact-fraction.js'
import {
  COUNTS_FIELD,
  type Counting,
  counted,
  isNotAbove,
  NAME_FIELD,
  type Named,
  namingOf,
  parseKnown,
  parseUnits,
  quotaOf,
  resized,
} from './limit-options.js'
import { RowView, TypedRows } from './rows.js'

export interface TokenBucketLimit extends Limit {
  readonly refillPerSecond: number
}

export interface TokenBucketOptions extends Named, Counting {
  /** Tokens in a full bucket: the most that can be used at once. */
  readonly capacity: number
  readonly refillPerSecond: number
}

const MICRO = 1_000_000
// Filling a bucket more slowly would leave the range in which microseconds are exact.
const MAX_FILL_US = 2 ** 52
const MAX_REFILL_PER_SECOND = MAX_UNITS * 1_000
const KIND = 'bucket'
const FIELDS = {
  capacity: {
    kind: 'units',
    text: 'Tokens in a full bucket: the most that can be used at once.',
    required: true,
  },
  refillPerSecond: { kind: 'rate', text: 'Tokens added each second.', required: true },
  counts: COUNTS_FIELD,
  name: NAME_FIELD,
} as const
/** Enough for a probe, and soon forgotten. */
const PROBE = { limit: 1_000_000, refillPerSecond: 1_000_000 }
/** Applied to a rate of which a part is taken, so that rounding is downwards too. */
const ROUND_DOWN = 1 - 2 ** -51

function parse(options: unknown): TokenBucketLimit {
  const known = parseKnown<TokenBucketOptions>(options, 'tokenBucket', Object.keys(FIELDS))
  const capacity = parseUnits(known.capacity, 'capacity')
  const refillPerSecond = parseRate(known.refillPerSecond, capacity)
  const fillUs = Math.max(1, Math.ceil((capacity / refillPerSecond) * 1e6))
  return Object.freeze({
    algorithm: tokenBucketAlgorithm,
    ...counted(known, KIND),
    limit: capacity,
    refillPerSecond,
    quota: quotaOf(capacity, fillUs),
  })
}

function parseRate(value: unknown, capacity: number): number {
  if (typeof value !== 'number' || !(value > 0) || value > MAX_REFILL_PER_SECOND) {
    throw unexpected(
      'ERR_HEADGATE_INVALID_LIMIT',
      'refillPerSecond',
      `a number above 0 and up to ${MAX_REFILL_PER_SECOND}`,
      value,
    )
  }
  if ((capacity / value) * 1e6 > MAX_FILL_US) {
    throw unexpected(
      'ERR_HEADGATE_INVALID_LIMIT',
      'refillPerSecond',
      `a rate that fills ${capacity} tokens within 142 years`,
      value,
    )
  }
  return value
}

/** The nearest refill rate that a bucket of this capacity may have. */
function boundedRate(refillPerSecond: number, capacity: number): number {
  return Math.min(MAX_REFILL_PER_SECOND, Math.max(refillPerSecond, (capacity * 1e6) / MAX_FILL_US))
}

function resize(limit: TokenBucketLimit, units: number, factor: number): TokenBucketLimit {
  const changed = resized(limit, units, factor)
  // An empty bucket that never refills is a ban, and its rate means nothing.
  if (units === 0) return Object.freeze(changed)
  return Object.freeze({ ...changed, refillPerSecond: boundedRate(limit.refillPerSecond * factor, units) })
}

function share(limit: TokenBucketLimit, processes: number): TokenBucketLimit {
  if (processes <= 1 || limit.limit === 0) return limit
  const units = Math.max(1, Math.floor(limit.limit / processes))
  return { ...limit, limit: units, refillPerSecond: limit.refillPerSecond / processes }
}

function part(limit: TokenBucketLimit, part: number, of: number): TokenBucketLimit {
  const { refillPerSecond } = limit
  return {
    ...limit,
    limit: mulDivFloor(limit.limit, part, of),
    refillPerSecond: part === of ? refillPerSecond : ((refillPerSecond * part) / of) * ROUND_DOWN,
  }
}

/**
 * Capacity − rate × TTL: spent in τ ≤ (capacity − rate × TTL) + rate × (τ + TTL) = capacity + rate × τ.
 *
 * A bucket goes on refilling while units are out, as if they had been spent. So what comes back of a lease is fewer by
 * what was refilled since it was taken (`heldSinceUs`). Otherwise what is out beyond what is missing could grow from hand
 * to hand, one process taking just before another gives back, past the rate × TTL that the stricter capacity provides
 * for.
 */
function strict(limit: TokenBucketLimit, lease: Lease): TokenBucketLimit {
  const units = limit.limit - Math.ceil((limit.refillPerSecond * lease.ttlUs) / 1e6)
  const { quota } = limit
  const told = quota.limit === limit.limit ? { ...quota, limit: units } : quota
  const burst = told.burst === limit.limit ? units : told.burst
  return { ...limit, lease, limit: units, quota: { ...told, burst } }
}

/** Micro-tokens missing from a full bucket at `lastRefillUs`; when it was last reset, or 0. */
export interface BucketState {
  missing: number
  lastRefillUs: number
  resetUs: number
}

function empty(): BucketState {
  return { missing: 0, lastRefillUs: 0, resetUs: 0 }
}

/**
 * A clock that stepped back is waited for, unless the wait for one token would then be longer than a whole bucket
 * takes to fill: such a state counts as forgotten.
 */
function isForgotten(limit: TokenBucketLimit, state: BucketState, nowUs: number): boolean {
  // Mostly the clock has not stepped back, and there is nothing to divide.
  if (state.lastRefillUs <= nowUs) return false
  return state.lastRefillUs - nowUs > ((limit.limit - 1) * MICRO) / limit.refillPerSecond
}

/** The micro-tokens missing when last written; a bucket made smaller since then is empty, not in debt. */
function storedMissing(limit: TokenBucketLimit, state: BucketState): number {
  return Math.min(state.missing, limit.limit * MICRO)
}

function missingAt(limit: TokenBucketLimit, state: BucketState, nowUs: number): number {
  if (isForgotten(limit, state, nowUs)) return 0
  const elapsedUs = Math.max(0, nowUs - state.lastRefillUs)
  return Math.max(0, storedMissing(limit, state) - Math.floor(elapsedUs * limit.refillPerSecond))
}

/** Least whole number of microseconds in which `micro` micro-tokens are refilled. */
function refillUs(refillPerSecond: number, micro: number): number {
  let elapsedUs = Math.ceil(micro / refillPerSecond)
  // No whole number is exact any more, and one more would not make a difference.
  if (!(elapsedUs < MAX_FILL_US)) return elapsedUs
  // The quotient is rounded, by a microsecond or two; the product is what decides.
  while (Math.floor(elapsedUs * refillPerSecond) < micro) elapsedUs++
  while (elapsedUs > 0 && Math.floor((elapsedUs - 1) * refillPerSecond) >= micro) elapsedUs--
  return elapsedUs
}

/** Time never runs backwards for a key. */
function effectiveNow(limit: TokenBucketLimit, state: BucketState, nowUs: number): number {
  return isForgotten(limit, state, nowUs) ? nowUs : Math.max(nowUs, state.lastRefillUs)
}

function decide(
  limit: TokenBucketLimit,
  state: BucketState,
  units: number,
  nowUs: number,
  mayCharge: boolean,
  out: Outcome,
): void {
  let missing = missingAt(limit, state, nowUs)
  const wanted = missing + units * MICRO
  const fits = wanted <= limit.limit * MICRO
  out.waitUs = fits ? 0 : fitsAt(limit, state, units) - nowUs
  out.chargedAtUs = NOT_CHARGED
  if (fits && mayCharge && units > 0) {
    const atUs = effectiveNow(limit, state, nowUs)
    missing = wanted
    state.missing = wanted
    state.lastRefillUs = atUs
    out.chargedAtUs = atUs
  }
  out.remaining = limit.limit - Math.ceil(missing / MICRO)
  out.resetAfterUs = missing === 0 ? 0 : fullAt(limit, state) - nowUs
}

/** When units that do not fit now will. */
function fitsAt(limit: TokenBucketLimit, state: BucketState, units: number): number {
  if (units > limit.limit) return NEVER
  const excess = storedMissing(limit, state) - (limit.limit - units) * MICRO
  return state.lastRefillUs + refillUs(limit.refillPerSecond, excess)
}

/** When nothing is missing any more. */
function fullAt(limit: TokenBucketLimit, state: BucketState): number {
  return state.lastRefillUs + refillUs(limit.refillPerSecond, storedMissing(limit, state))
}

/**
 * Charges units that were used already. A debt is a bucket that begins to fill later: empty, and last refilled when the
 * debt will have been paid. It is less than a whole bucket, the furthest ahead that this time may lie.
 */
function chargeBeyond(limit: TokenBucketLimit, state: BucketState, units: number, nowUs: number): void {
  if (limit.limit === 0) return
  const atUs = effectiveNow(limit, state, nowUs)
  const owedUs = atUs - nowUs
  const missing = missingAt(limit, state, nowUs) + units * MICRO
  const capacity = limit.limit * MICRO
  state.missing = Math.min(missing, capacity)
  state.lastRefillUs = atUs
  if (missing > capacity) {
    const mostUs = Math.floor(((limit.limit - 1) * MICRO) / limit.refillPerSecond)
    state.lastRefillUs =
      nowUs + Math.min(mostUs, owedUs + refillUs(limit.refillPerSecond, missing - capacity))
  }
}

/**
 * Credits up to `units` now, never above capacity; when they were taken does not matter, as long as the state of then
 * would still be kept. Returns the units. Those held in advance are fewer by what was refilled since: the bucket may
 * have been full and emptied again meanwhile. Nothing comes back to a bucket that misses more than this capacity: it was
 * written with other numbers, and what it misses beyond these would be forgotten.
 */
function refund(
  limit: TokenBucketLimit,
  state: BucketState,
  units: number,
  chargedAtUs: number | null,
  nowUs: number,
  heldSinceUs = nowUs,
): number {
  if (units < 0) {
    chargeBeyond(limit, state, -units, nowUs)
    return 0
  }
  if (chargedAtUs !== null && (chargedAtUs <= state.resetUs || isLongAgo(limit, chargedAtUs, nowUs))) return 0
  const missing = missingAt(limit, state, nowUs)
  if (missing > 0 && state.missing > limit.limit * MICRO) return 0
  const refilled = Math.max(0, nowUs - heldSinceUs) * limit.refillPerSecond
  const back = Math.min(Math.max(0, units - Math.ceil(refilled / MICRO)) * MICRO, missing)
  if (back === 0) return 0
  state.lastRefillUs = effectiveNow(limit, state, nowUs)
  state.missing = missing - back
  return Math.ceil(back / MICRO)
}

function reset(limit: TokenBucketLimit, state: BucketState, nowUs: number): void {
  state.resetUs = Math.max(state.resetUs, effectiveNow(limit, state, nowUs))
  state.missing = 0
  state.lastRefillUs = 0
}

/** As if it had been emptied so long before `untilUs` as it takes to fill. */
function usedUp(limit: TokenBucketLimit, untilUs: number, nowUs: number): BucketState {
  const missing = limit.limit * MICRO
  const emptiedUs = untilUs - refillUs(limit.refillPerSecond, missing)
  return { missing, lastRefillUs: Math.min(nowUs, emptiedUs), resetUs: 0 }
}

/** Twice the time an empty bucket takes to fill, in whole seconds. */
function twoFillsUs(limit: TokenBucketLimit): number {
  return 2 * Math.ceil(limit.limit / limit.refillPerSecond) * MICRO
}

/** Whether a charge is so old that all it was made of may have been forgotten since, a reset included. */
function isLongAgo(limit: TokenBucketLimit, chargedAtUs: number, nowUs: number): boolean {
  return nowUs - chargedAtUs >= twoFillsUs(limit)
}

/** Two fills; catching up with a back-step comes on top. */
function keepForUs(limit: TokenBucketLimit, state: BucketState, nowUs: number): number {
  return Math.max(0, state.lastRefillUs - nowUs) + twoFillsUs(limit)
}

/** A bucket: `missing` in the first half of the row, `lastRefillUs` in the second. */
class BucketView extends RowView implements BucketState {
  get missing(): number {
    return this.page.doubles[this.index * 2] as number
  }
  set missing(value: number) {
    this.page.doubles[this.index * 2] = value
  }
  get lastRefillUs(): number {
    return this.page.doubles[this.index * 2 + 1] as number
  }
  set lastRefillUs(value: number) {
    this.page.doubles[this.index * 2 + 1] = value
  }
}

export const tokenBucketAlgorithm: Algorithm<TokenBucketLimit, BucketState> = {
  name: 'token-bucket',
  fields: FIELDS,
  sample: { capacity: 1, refillPerSecond: 1 },
  parse,
  optionsOf: limit => ({
    algorithm: 'token-bucket',
    capacity: limit.limit,
    refillPerSecond: limit.refillPerSecond,
    ...namingOf(limit, KIND),
  }),
  describe: ({ limit, refillPerSecond }) =>
    `token-bucket ${limit}, refilled by ${Number(refillPerSecond.toFixed(6))} a second`,
  resize,
  share,
  part,
  probe: limit => ({ ...limit, ...PROBE }),
  mostIn: (limit, intervalUs) => limit.limit + (limit.refillPerSecond * intervalUs) / MICRO,
  ratePerSecond: limit => limit.refillPerSecond,
  isCoveredBy: (limit, stricter) =>
    isNotAbove(stricter, limit) && stricter.algorithm.ratePerSecond(stricter) <= limit.refillPerSecond,
  lease: {
    span: 'the time the bucket takes to fill',
    longestUs: limit => Math.floor((limit.limit / LEASE_PARTS / limit.refillPerSecond) * 1e6),
    strict,
    lastsUs: (_limit, lease) => lease.ttlUs,
  },
  empty,
  decide,
  refund,
  refilled: (limit, chargedAtUs, nowUs) => ((nowUs - chargedAtUs) / MICRO) * limit.refillPerSecond,
  reset,
  usedUp,
  keepForUs,
  isUncharged: (limit, state, nowUs) => missingAt(limit, state, nowUs) === 0,
  rows: () => new TypedRows((page, index) => new BucketView(page, index)),
  wire: {
    kind: 'bucket',
    numbers: limit => [limit.limit, limit.refillPerSecond, `${limit.limit}/${limit.refillPerSecond}`],
    // In micro-tokens.
    mostLeft: limit => limit.limit * MICRO,
    charged(limit, left, nowUs, out) {
      out.waitUs = 0
      out.remaining = Math.floor(left / MICRO)
      out.resetAfterUs = refillUs(limit.refillPerSecond, limit.limit * MICRO - left)
      out.chargedAtUs = nowUs
    },
    decided(limit, [missing, lastRefillUs], units, nowUs, isCharged, out) {
      const state = { missing: Number(missing), lastRefillUs: Number(lastRefillUs), resetUs: 0 }
      decide(limit, state, units, nowUs, isCharged, out)
    },
  },
  toJSON() {
    return this.name
  },
}

/**
 * Creates a limit that admits bursts of up to `capacity`, and `refillPerSecond` sustained.
 *
 * @example
 * tokenBucket({ capacity: 20, refillPerSecond: 0.5 })
 */
export function tokenBucket(options: TokenBucketOptions): TokenBucketLimit {
  return parse(options)
}
