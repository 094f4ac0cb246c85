/**
 * Quota: so many units in a calendar period. Nothing fades and nothing slides: what was used counts until the period ends.
 *
 *   used(period) + cost ≤ limit + carried over + credits          admit
 *
 * Units are taken in this order: the limit and what was carried over from the period before, units credited for this period,
 * credits that last; then, with `overage: 'count'`, units beyond all of them are admitted and counted.
 *
 * Invariant: without credits, rollover and overage, at most `limit` in a period. Time is counted in whole milliseconds.
 */
import { unexpected } from '../errors/headgate-error.js'
import {
  type Algorithm,
  type AloneReply,
  type Limit,
  MAX_UNITS,
  NEVER,
  NOT_CHARGED,
  type OptionField,
  type Outcome,
  type StoredState,
  type Usage,
} from './algorithm.js'
import {
  type CalendarOptions,
  calendarOf,
  DEFAULT_ANCHORS,
  MOST_DAYS,
  type Per,
  type Period,
  parseCalendar,
  spanMs,
} from './calendar.js'
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
  roomBeyond,
} from './limit-options.js'
import { ObjectRows } from './rows.js'

export interface QuotaOptions extends CalendarOptions, Named, Counting {
  /** Units per period; with 0 there are only credits. */
  readonly limit: number
  /** Carries units that were not used over to the next period, at most so many. They end with it. */
  readonly rollover?: { readonly most: number }
  /** `count`: what is asked for beyond limit and credits is admitted and counted. */
  readonly overage?: 'count'
}

/** A limit of so many units in a calendar period. */
export interface QuotaLimit extends Limit, Required<CalendarOptions> {
  /** Names period, time zone and anchor. */
  readonly kind: string
  /** The most that is carried over; 0 for nothing. */
  readonly rollover: number
  readonly hasOverage: boolean
}

const FIELDS = {
  limit: { kind: 'units', text: 'Units per period; with 0 there are only credits.', required: true },
  per: { kind: 'period', text: 'The calendar period.', required: true },
  timeZone: { kind: 'timeZone', text: 'Where the period begins at midnight. Left out: `UTC`.' },
  anchor: {
    kind: 'anchor',
    text: 'The day that begins a period: of a week (`monday`), of a month (1; a month that is too short begins on its last day), of a year (`01-01`).',
  },
  rollover: { kind: 'rollover', text: 'How many unused units the next period has in addition, at most.' },
  overage: {
    kind: 'overage',
    text: 'With `count`, what is asked for beyond limit and credits is admitted and counted.',
  },
  counts: COUNTS_FIELD,
  name: NAME_FIELD,
} as const satisfies Record<string, OptionField>

const KIND = 'quota'

function parse(options: unknown): QuotaLimit {
  const known = parseKnown<QuotaOptions>(options, KIND, Object.keys(FIELDS))
  const limit = parseUnits(known.limit, 'limit')
  const calendar = parseCalendar(known)
  return Object.freeze({
    algorithm: quotaAlgorithm,
    ...counted(known, `${KIND}-${calendar.kind}`),
    limit,
    quota: quotaOf(limit, nominalUs(calendar.per)),
    ...calendar,
    rollover: parseRollover(known.rollover),
    hasOverage: parseOverage(known.overage),
  })
}

function parseRollover(rollover: unknown): number {
  if (rollover === undefined) return 0
  if (typeof rollover !== 'object' || rollover === null || Array.isArray(rollover)) {
    throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'rollover', 'an object with the number most', rollover)
  }
  const { most } = parseKnown<{ most: number }>(rollover, 'rollover', ['most'])
  return parseUnits(most, 'rollover.most')
}

function parseOverage(overage: unknown): boolean {
  if (overage === undefined || overage === 'count') return overage === 'count'
  throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'overage', "'count'", overage)
}

const DAY_US = 86_400_000_000

/** The longest that a period is, but for changes of the clocks: what headers call the window. */
function nominalUs(per: Per): number {
  return MOST_DAYS[per] * DAY_US
}

/** What is known of a caller. All units are of the period that ends at `endMs`, unless they say otherwise. */
export interface QuotaState {
  /** 0 if nothing was ever charged. */
  endMs: number
  /** Units charged, however they were paid for. */
  used: number
  /** Of those, paid with lasting credits. */
  spent: number
  /** Of those, beyond limit and credits. */
  over: number
  /** The most that was used, if some was given back. */
  peak: number
  /** Units credited for this period. */
  gift: number
  /** Lasting credits that are left. */
  credits: number
  /** Used, spent and over of the period before. */
  previous: number
  previousSpent: number
  previousOver: number
  /** The millisecond of the last reset, or 0. */
  resetUs: number
}

function empty(): QuotaState {
  return {
    endMs: 0,
    used: 0,
    spent: 0,
    over: 0,
    peak: 0,
    gift: 0,
    credits: 0,
    previous: 0,
    previousSpent: 0,
    previousOver: 0,
    resetUs: 0,
  }
}

const MS_US = 1_000

function toMs(us: number): number {
  return Math.floor(us / MS_US)
}

function spanOf({ per }: QuotaLimit): number {
  return spanMs(per)
}

/** The period of a moment, or the next one if the state is of that: a clock that stepped back waits at its start. */
function periodFor(limit: QuotaLimit, state: QuotaState, nowUs: number): Period {
  const calendar = calendarOf(limit)
  const period = calendar.at(toMs(nowUs))
  if (state.endMs <= period.endMs) return period
  const next = calendar.next(period)
  return state.endMs === next.endMs ? next : period
}

/** Moves the state to a period: what was used in the one before is remembered, what is older or far ahead is forgotten. */
function enter(state: QuotaState, period: Period): void {
  if (state.endMs === period.endMs) return
  const isBefore = state.endMs === period.startMs
  state.previous = isBefore ? state.used : 0
  state.previousSpent = isBefore ? state.spent : 0
  state.previousOver = isBefore ? state.over : 0
  state.used = 0
  state.spent = 0
  state.over = 0
  state.peak = 0
  state.gift = 0
  state.endMs = period.endMs
}

/** The same without changing it. */
function entered(state: QuotaState, period: Period): QuotaState {
  if (state.endMs === period.endMs) return state
  const copy = { ...state }
  enter(copy, period)
  return copy
}

/** What the period before left unused of its limit, of a caller who was seen in it. */
function carriedOver({ limit, rollover }: QuotaLimit, state: QuotaState): number {
  if (rollover === 0 || state.previous === 0) return 0
  const own = state.previous - state.previousSpent - state.previousOver
  return Math.min(rollover, Math.max(0, limit - own))
}

/** What is left of the limit and of what comes on top of it for this period; below 0 if more was used already. */
function quotaLeft(limit: QuotaLimit, state: QuotaState): number {
  const own = state.used - state.spent - state.over
  return limit.limit + carriedOver(limit, state) + state.gift - own
}

/** What is left with credits; below 0 if something is owed. */
function leftOf(limit: QuotaLimit, state: QuotaState): number {
  const left = quotaLeft(limit, state)
  return state.credits === 0 ? left : Math.max(0, left) + state.credits
}

function shownLeft(limit: QuotaLimit, state: QuotaState): number {
  return Math.max(0, Math.min(MAX_UNITS, leftOf(limit, state)))
}

function decide(
  limit: QuotaLimit,
  state: QuotaState,
  units: number,
  nowUs: number,
  mayCharge: boolean,
  out: Outcome,
): void {
  const period = periodFor(limit, state, nowUs)
  const now = entered(state, period)
  const left = leftOf(limit, now)
  const fits = units <= left || (limit.hasOverage && now.used + units <= MAX_UNITS)
  out.waitUs = fits ? 0 : waitUs(limit, now, period, units, nowUs)
  out.chargedAtUs = NOT_CHARGED
  if (fits && mayCharge && units > 0) {
    enter(state, period)
    const before = Math.max(state.used, state.peak)
    charge(limit, state, units)
    out.remaining = shownLeft(limit, state)
    out.resetAfterUs = period.endMs * MS_US - nowUs
    out.chargedAtUs = Math.max(period.startMs * MS_US, nowUs)
    out.told = crossed(limit, before, state.used)
    return
  }
  out.remaining = shownLeft(limit, now)
  out.resetAfterUs = now.used === 0 ? 0 : period.endMs * MS_US - nowUs
}

/** A cost that does not fit now fits when the period has ended, or never. */
function waitUs(limit: QuotaLimit, state: QuotaState, period: Period, units: number, nowUs: number): number {
  const next = { ...state }
  enter(next, { ...period, startMs: period.endMs, endMs: Number.POSITIVE_INFINITY })
  const willFit = units <= leftOf(limit, next) || (limit.hasOverage && units <= MAX_UNITS)
  return willFit ? period.endMs * MS_US - nowUs : NEVER
}

/** Writes units down that fit, or that are admitted beyond; the state is of this period. */
function charge(limit: QuotaLimit, state: QuotaState, units: number): void {
  const beyond = Math.max(0, units - Math.max(0, quotaLeft(limit, state)))
  const paid = Math.min(beyond, state.credits)
  state.used += units
  state.spent += paid
  state.credits -= paid
  if (limit.hasOverage) state.over += beyond - paid
}

/** The parts of a limit, in percent, of which an event tells when they are used. */
const LEAST_THRESHOLD = 80
const THRESHOLDS = [LEAST_THRESHOLD, 100]

/** The thresholds that a charge has reached, in percent; null if it reached none. */
function crossed({ limit }: QuotaLimit, before: number, after: number): readonly number[] | null {
  if (limit === 0 || after < levelOf(limit, LEAST_THRESHOLD)) return null
  const reached = THRESHOLDS.filter(percent => {
    const level = levelOf(limit, percent)
    return before < level && after >= level
  })
  return reached.length === 0 ? null : reached
}

function levelOf(limit: number, percent: number): number {
  return Math.ceil((limit * percent) / 100)
}

function refund(
  limit: QuotaLimit,
  state: QuotaState,
  units: number,
  chargedAtUs: number | null,
  nowUs: number,
): number {
  const period = periodFor(limit, state, nowUs)
  if (units < 0) {
    enter(state, period)
    chargeBeyond(limit, state, -units)
    return 0
  }
  if (state.endMs !== period.endMs) return 0
  if (chargedAtUs !== null) {
    const atMs = toMs(chargedAtUs)
    if (atMs * MS_US <= state.resetUs || atMs < period.startMs || atMs >= period.endMs) return 0
  }
  const back = Math.min(units, state.used)
  if (back === 0) return 0
  const over = Math.min(back, state.over)
  const spent = Math.min(back - over, state.spent)
  state.peak = Math.max(state.peak, state.used)
  state.used -= back
  state.over -= over
  state.spent -= spent
  state.credits += spent
  return back
}

/** Charges units that were used already: as they come, and then as far as there is room. */
function chargeBeyond(limit: QuotaLimit, state: QuotaState, units: number): void {
  const fits = limit.hasOverage ? MAX_UNITS - state.used : Math.max(0, leftOf(limit, state))
  const first = Math.min(units, fits)
  charge(limit, state, first)
  if (limit.hasOverage) return
  const own = state.used - state.spent
  state.used += Math.min(units - first, roomBeyond(limit, own), MAX_UNITS - state.used)
}

function reset(limit: QuotaLimit, state: QuotaState, nowUs: number): void {
  const period = periodFor(limit, state, nowUs)
  enter(state, period)
  state.used = 0
  state.spent = 0
  state.over = 0
  state.peak = 0
  state.resetUs = Math.max(state.resetUs, Math.max(toMs(nowUs), period.startMs) * MS_US)
}

/** Until its period has been the one before. */
function keepForUs(limit: QuotaLimit, state: QuotaState, nowUs: number): number {
  if (state.credits > 0) return Number.POSITIVE_INFINITY
  return Math.max(0, (state.endMs + spanOf(limit)) * MS_US - nowUs)
}

/** `left × span + milliseconds until the period ends − 1`: see lua/algorithms. */
const alone: AloneReply<QuotaLimit> = {
  isPossible(limit) {
    const isPlain = limit.rollover === 0 && !limit.hasOverage
    return isPlain && (limit.limit + 1) * spanOf(limit) <= Number.MAX_SAFE_INTEGER
  },
  read(limit, reply, serverUs, out, units) {
    const span = spanOf(limit)
    const restMs = (reply % span) + 1
    const left = Math.floor(reply / span)
    if (left + units > limit.limit) return false
    // The period that ends nearest to then; none is shorter than 22 hours.
    const period = calendarOf(limit).at(toMs(serverUs) + restMs - 11 * HOUR_MS)
    const atUs = Math.max(period.startMs, period.endMs - restMs) * MS_US
    charged(limit, left, period.endMs * MS_US, atUs, out, units)
    return true
  },
}

const HOUR_MS = 3_600_000

/** Writes a charge down that a plain limit had room for. */
function charged(
  limit: QuotaLimit,
  left: number,
  endUs: number,
  nowUs: number,
  out: Outcome,
  units: number,
): void {
  out.waitUs = 0
  out.remaining = left
  out.resetAfterUs = endUs - nowUs
  out.chargedAtUs = nowUs
  out.told = crossed(limit, limit.limit - left - units, limit.limit - left)
}

export const quotaAlgorithm: Algorithm<QuotaLimit, QuotaState> = {
  name: KIND,
  fields: FIELDS,
  sample: { limit: 1, per: 'month' },
  parse,
  optionsOf(limit) {
    const { per, timeZone, anchor, rollover, hasOverage } = limit
    return {
      algorithm: KIND,
      limit: limit.limit,
      per,
      ...(timeZone !== 'UTC' && { timeZone }),
      ...(anchor !== DEFAULT_ANCHORS[per] && { anchor }),
      ...(rollover > 0 && { rollover: { most: rollover } }),
      ...(hasOverage && { overage: 'count' }),
      ...namingOf(limit, `${KIND}-${limit.kind}`),
    }
  },
  describe({ limit, per, timeZone, anchor, rollover, hasOverage }) {
    const from = anchor === DEFAULT_ANCHORS[per] ? '' : ` from ${anchor}`
    const carried = rollover > 0 ? `, up to ${rollover} carried over` : ''
    return `${KIND} ${limit} a ${per}${from} in ${timeZone}${carried}${hasOverage ? ', more is counted' : ''}`
  },
  resize: (limit, units, factor) => Object.freeze(resized(limit, units, factor)),
  share(limit, processes) {
    if (processes <= 1 || limit.limit === 0) return limit
    return { ...limit, limit: Math.max(1, Math.floor(limit.limit / processes)) }
  },
  part: (limit, part, of) => ({ ...limit, limit: mulDivFloor(limit.limit, part, of) }),
  probe: limit => ({ ...limit, limit: MAX_UNITS }),
  // Stays as it is: a lease ends with the period it was granted in, before the last millisecond, because the script tells whole ones.
  lease: {
    span: 'a day',
    longestUs: () => DAY_US / 20,
    strict: (limit, lease) => ({ ...limit, lease }),
    lastsUs(limit, lease, chargedAtUs) {
      const { endMs } = calendarOf(limit).at(toMs(chargedAtUs))
      return Math.min(lease.ttlUs, (endMs - toMs(chargedAtUs) - 1) * MS_US)
    },
  },
  mostIn: () => Number.POSITIVE_INFINITY,
  ratePerSecond: ({ limit, per }) => (limit * 1_000_000) / nominalUs(per),
  isCoveredBy: (limit, stricter) => isNotAbove(stricter, limit) && stricter.id === limit.id,
  refilled: () => 0,
  empty,
  decide,
  refund,
  reset,
  usedUp(limit, untilUs, nowUs) {
    const period = periodFor(limit, { ...empty(), endMs: toMs(untilUs) }, nowUs)
    return { ...empty(), endMs: period.endMs, used: limit.limit }
  },
  keepForUs,
  isUncharged(limit, state, nowUs) {
    const { used, previous, credits, gift } = entered(state, periodFor(limit, state, nowUs))
    return used === 0 && previous === 0 && credits === 0 && gift === 0
  },
  account: {
    credit(limit, state, units, isLasting, nowUs) {
      enter(state, periodFor(limit, state, nowUs))
      if (isLasting) state.credits = Math.min(MAX_UNITS, state.credits + units)
      else state.gift = Math.min(MAX_UNITS, state.gift + units)
    },
    usage,
    apart: ['per', 'timeZone', 'anchor'],
    perDay: ({ limit, per }) => Math.floor(limit / MOST_DAYS[per]),
    stateOf,
  },
  rows: () => new ObjectRows(empty),
  wire: {
    kind: KIND,
    numbers: limit => [limit.limit, spanOf(limit)],
    sent(limit, nowUs) {
      const bounds = calendarOf(limit).bounds(toMs(nowUs))
      const { rollover, hasOverage } = limit
      return rollover === 0 && !hasOverage ? bounds : `${bounds}:${rollover}:${hasOverage ? 1 : 0}`
    },
    mostLeft: () => MAX_UNITS,
    charged(limit, left, nowUs, out, units) {
      const { endMs } = calendarOf(limit).at(toMs(nowUs))
      charged(limit, left, endMs * MS_US, nowUs, out, units)
    },
    decided(limit, stored, units, nowUs, isCharged, out) {
      decide(limit, stateOf(stored), units, nowUs, isCharged, out)
    },
    alone,
  },
  toJSON() {
    return this.name
  },
}

function usage(limit: QuotaLimit, stored: QuotaState, nowUs: number): Usage {
  const period = periodFor(limit, stored, nowUs)
  const state = entered(stored, period)
  const before = calendarOf(limit).at(period.startMs - 1)
  return {
    limit: limit.limit,
    per: limit.per,
    timeZone: limit.timeZone,
    startsAt: period.startMs,
    endsAt: period.endMs,
    used: state.used,
    remaining: shownLeft(limit, state),
    credits: state.credits,
    periodCredits: state.gift,
    carriedOver: carriedOver(limit, state),
    paidWithCredits: state.spent,
    overage: state.over,
    previous: {
      startsAt: before.startMs,
      endsAt: before.endMs,
      used: state.previous,
      paidWithCredits: state.previousSpent,
      overage: state.previousOver,
    },
  }
}

/** A state as a script tells it. */
function stateOf(stored: StoredState): QuotaState {
  const [previous, used, endMs, resetMs, credits, spent, gift, over, peak, previousSpent, previousOver] =
    stored.map(Number) as [
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
      number,
    ]
  const resetUs = resetMs * MS_US
  return { previous, used, endMs, resetUs, credits, spent, gift, over, peak, previousSpent, previousOver }
}

/**
 * Creates a limit of so many units in a calendar period, exactly, in a time zone.
 *
 * @example
 * quota({ limit: 100_000, per: 'month', timeZone: 'Europe/Berlin' })
 */
export function quota(options: QuotaOptions): QuotaLimit {
  return parse(options)
}
