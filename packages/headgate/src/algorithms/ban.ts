/**
 * A ban that grows: who is denied `after` times within `within` is banned, for longer each time. It stands beside the limits
 * of a policy, which do the counting:
 *
 *   strike        a denial by a limit of the policy; `after` of them within `within` of the first are a ban
 *   ban n         lasts for[n − 1], the last of the list from then on; meanwhile nothing counts, so nothing extends it
 *   forgotten     longest ban + `within` after the end of the last ban, or after the last strikes
 *
 * `level` is how many bans there were, up to the length of the list. It outlives the longest ban: forgotten with the ban, every ban would be the first.
 *
 * Asking charges nothing: a request is denied while the ban lasts and else passes. Strikes are charged afterwards, by whoever
 * saw the denial (`Strikes`), as units that were used already.
 */
import { unexpected } from '../errors/headgate-error.js'
import {
  type Algorithm,
  type Limit,
  MOST_BANS,
  NOT_CHARGED,
  type Outcome,
  type ReportStrikes,
  type SeenCheck,
  type Strike,
  type Strikes,
} from './algorithm.js'
import { type Duration, durationOption, formatDurationUs, parseDurationUs } from './durations.js'
import { parseKnown, parseWhole } from './limit-options.js'
import { ObjectRows } from './rows.js'

/** How denials become bans. `limit` is the number of strikes. */
export interface BanLimit extends Limit {
  readonly withinUs: number
  /** How long each ban lasts; none is shorter than the one before. */
  readonly forUs: readonly number[]
}

export interface BanOptions {
  /** Denials that are a ban. */
  readonly after: number
  /** The time within which they count together. */
  readonly within: Duration
  /** How long the first ban lasts, the second and so on; the last one from then on. */
  readonly for: Duration | readonly Duration[]
}

/** The strikes of one report are one number, and so many denials are a flood whatever they are called. */
export const MAX_STRIKES = 10_000
/** Soon forgotten. */
const PROBE_US = 1_000_000
const FIELDS = {
  after: { kind: 'strikes', text: 'Denials that are a ban.', required: true },
  within: { kind: 'duration', text: 'The time within which they count together.', required: true },
  for: {
    kind: 'durations',
    text: 'How long the first ban lasts, the second and so on; the last one from then on. None is shorter than the one before.',
    required: true,
  },
} as const

function parse(options: unknown): BanLimit {
  const known = parseKnown<BanOptions>(options, 'ban', Object.keys(FIELDS))
  const after = parseWhole(known.after, 'after', 1, MAX_STRIKES)
  const withinUs = parseDurationUs(known.within, 'within')
  return Object.freeze({
    algorithm: banAlgorithm,
    // Without its numbers, so that changing them keeps the level.
    id: 'ban',
    counts: 'requests',
    limit: after,
    withinUs,
    forUs: Object.freeze(parseSpans(known.for)),
    quota: Object.freeze({ limit: after, windowUs: withinUs, burst: null, unit: 'strikes' }),
  })
}

function parseSpans(value: unknown): number[] {
  const spans: unknown[] = Array.isArray(value) ? value : [value]
  if (spans.length === 0 || spans.length > MOST_BANS) {
    throw unexpected('ERR_HEADGATE_INVALID_LIMIT', 'for', `1 to ${MOST_BANS} durations`, value)
  }
  const fieldOf = (index: number): string => (Array.isArray(value) ? `for[${index}]` : 'for')
  const forUs = spans.map((span, index) => parseDurationUs(span, fieldOf(index)))
  const shorter = forUs.findIndex((us, index) => us < (forUs[index - 1] ?? 0))
  if (shorter < 0) return forUs
  const before = formatDurationUs(forUs[shorter - 1] as number)
  const expected = `no ban shorter than the ${before} before it`
  throw unexpected('ERR_HEADGATE_INVALID_LIMIT', fieldOf(shorter), expected, spans[shorter])
}

/**
 * How many bans there were; strikes since the last of them; and the time of the first of these strikes, or of the beginning of
 * the ban if there are none.
 */
export interface BanState {
  level: number
  strikes: number
  sinceUs: number
}

function empty(): BanState {
  return { level: 0, strikes: 0, sinceUs: 0 }
}

/** The last is the longest. */
function longestUs({ forUs }: BanLimit): number {
  return forUs.at(-1) as number
}

/** When the last ban ends, or the first of the strikes since came. */
function endsUs({ forUs }: BanLimit, { level, strikes, sinceUs }: BanState): number {
  const spanUs = level === 0 || strikes > 0 ? 0 : (forUs[Math.min(level, forUs.length) - 1] as number)
  return sinceUs + spanUs
}

/** Long after the last ban; or from before the clock stepped back by more than any ban lasts. */
function isForgotten(limit: BanLimit, state: BanState, nowUs: number): boolean {
  return nowUs >= forgottenUs(limit, state) || state.sinceUs - nowUs > longestUs(limit)
}

function forgottenUs(limit: BanLimit, state: BanState): number {
  return endsUs(limit, state) + longestUs(limit) + limit.withinUs
}

/** How much of a ban is left; 0 without one. */
function leftUs(limit: BanLimit, state: BanState, nowUs: number): number {
  if (state.level === 0 || state.strikes > 0 || isForgotten(limit, state, nowUs)) return 0
  return Math.max(0, endsUs(limit, state) - nowUs)
}

/** The strikes that still count. */
function strikesAt(limit: BanLimit, state: BanState, nowUs: number): number {
  return nowUs < state.sinceUs + limit.withinUs && !isForgotten(limit, state, nowUs) ? state.strikes : 0
}

function isUncharged({ level, strikes }: BanState): boolean {
  return level === 0 && strikes === 0
}

function decide(
  limit: BanLimit,
  state: BanState,
  _units: number,
  nowUs: number,
  _mayCharge: boolean,
  out: Outcome,
): void {
  const waitUs = leftUs(limit, state, nowUs)
  out.waitUs = waitUs
  out.chargedAtUs = NOT_CHARGED
  out.told = state.level > 0 && !isForgotten(limit, state, nowUs) ? [state.level] : null
  if (waitUs > 0) {
    out.remaining = 0
    out.resetAfterUs = waitUs
    return
  }
  // At least one: with fewer strikes to a ban than there were already, the next is one.
  out.remaining = Math.max(1, limit.limit - strikesAt(limit, state, nowUs))
  out.resetAfterUs =
    isUncharged(state) || isForgotten(limit, state, nowUs) ? 0 : forgottenUs(limit, state) - nowUs
}

/** Counts strikes, unless a ban lasts. Returns the level of the ban that they are; 0 if they are none yet. */
function strike(limit: BanLimit, state: BanState, units: number, nowUs: number): number {
  if (leftUs(limit, state, nowUs) > 0) return 0
  if (isForgotten(limit, state, nowUs)) Object.assign(state, empty())
  const before = strikesAt(limit, state, nowUs)
  if (before === 0) state.sinceUs = Math.max(nowUs, state.sinceUs)
  state.strikes = before + units
  if (state.strikes < limit.limit) return 0
  state.level = Math.min(state.level + 1, limit.forUs.length)
  state.strikes = 0
  state.sinceUs = Math.max(nowUs, state.sinceUs)
  return state.level
}

/** As if a first ban had begun so long before. */
function usedUp(limit: BanLimit, untilUs: number, nowUs: number): BanState {
  const level = limit.forUs.findIndex(us => us >= untilUs - nowUs) + 1 || limit.forUs.length
  return { level, strikes: 0, sinceUs: untilUs - (limit.forUs[level - 1] as number) }
}

type NamedLimit = SeenCheck<unknown>['plan']['limits'][number]

/** Subjects whose strikes wait while a report is on its way; those of further ones are dropped. */
const MOST_WAITING = 10_000
const MOST_AT_ONCE = 500

/**
 * Collects the strikes that one process sees, and reports them in the background: one report at a time, all strikes of a subject
 * together, and never more than are a ban. So a flood costs as many reports as there are round trips until it is banned.
 */
class StrikeReports<C> implements Strikes<C> {
  readonly #report: ReportStrikes<C>
  readonly #waiting = new Map<string, Strike<C>>()
  #isBusy = false

  constructor(report: ReportStrikes<C>) {
    this.#report = report
  }

  saw(check: SeenCheck<C>): void {
    const { limits } = check.plan
    for (let index = 0; index < limits.length; index++) {
      const { limit } = limits[index] as NamedLimit
      // A ban that lasts gets no strikes.
      if (limit.algorithm === banAlgorithm && check.wait(index) === 0 && isDeniedBeside(check, index))
        this.#add(check, index, limit.limit)
    }
    this.#send()
  }

  #add(check: SeenCheck<C>, index: number, most: number): void {
    const isLocal = check.source === 'local'
    const { name } = check.plan.limits[index] as NamedLimit
    const key = JSON.stringify([isLocal, name, check.subjectOf(index), check.scopeOf(index)])
    const units = Math.min(most, (this.#waiting.get(key)?.units ?? 0) + 1)
    if (units > 1 || this.#waiting.size < MOST_WAITING)
      this.#waiting.set(key, { check: check.checkOf(index), units, isLocal })
  }

  #send(): void {
    if (this.#isBusy || this.#waiting.size === 0) return
    this.#isBusy = true
    this.#report(this.#take(), () => {
      this.#isBusy = false
      this.#send()
    })
  }

  #take(): Strike<C>[] {
    const taken: Strike<C>[] = []
    for (const [key, strike] of this.#waiting) {
      this.#waiting.delete(key)
      if (taken.push(strike) === MOST_AT_ONCE) break
    }
    return taken
  }
}

/** Whether a limit of the same policy had no room for the same subject. */
function isDeniedBeside<C>(check: SeenCheck<C>, ban: number): boolean {
  const { limits } = check.plan
  const { name, limit } = limits[ban] as NamedLimit
  const policy = name.slice(0, -limit.id.length)
  return limits.some(
    (other, index) =>
      index !== ban &&
      check.wait(index) > 0 &&
      other.name.startsWith(policy) &&
      check.subjectOf(index) === check.subjectOf(ban) &&
      check.scopeOf(index) === check.scopeOf(ban),
  )
}

export const banAlgorithm: Algorithm<BanLimit, BanState> = {
  // Not what the file calls it: there it is a part of the policy, not one of its limits.
  name: 'growing-ban',
  fields: FIELDS,
  sample: { after: 5, within: '1m', for: ['1m'] },
  parse,
  optionsOf: ({ limit, withinUs, forUs }) => ({
    after: limit,
    within: durationOption(withinUs),
    for: forUs.map(durationOption),
  }),
  describe: ({ limit, withinUs, forUs }) =>
    `ban after ${limit} denials within ${formatDurationUs(withinUs)}, for ${forUs.map(formatDurationUs).join(', then ')}`,
  standing({ limit, forUs }, { remaining, waitMs, resetAfterMs, told }, words) {
    // With another list in force, a level may be beyond its end.
    const level = Math.min(told?.[0] ?? 0, forUs.length)
    const strikes = waitMs > 0 ? 0 : Math.max(0, limit - remaining)
    const ban = { level, stepsMs: forUs.map(us => us / 1000), strikes, bannedForMs: waitMs }
    const stepText = (step: number): string => `step ${Math.min(step, forUs.length)} of ${forUs.length}`
    if (waitMs > 0) return { ban, text: `banned for another ${words(waitMs)}, ${stepText(level)}` }
    if (resetAfterMs === 0) return { ban, text: 'not banned' }
    const text = `not banned, ${strikes} denials so far, the next ban is ${stepText(level + 1)}; all forgotten in ${words(resetAfterMs)}`
    return { ban, text }
  },
  // How many may come has nothing to do with how often they may be denied.
  resize: limit => limit,
  share: limit => limit,
  part: limit => limit,
  probe: limit => ({ ...limit, withinUs: PROBE_US, forUs: [PROBE_US] }),
  lease: null,
  mostIn: () => Number.POSITIVE_INFINITY,
  ratePerSecond: () => Number.POSITIVE_INFINITY,
  isCoveredBy: () => false,
  empty,
  decide,
  // Nothing was charged by asking. What was "used already" are strikes.
  refund: (limit, state, units, _chargedAtUs, nowUs) => (units < 0 ? strike(limit, state, -units, nowUs) : 0),
  refilled: () => 0,
  reset: (_limit, state) => void Object.assign(state, empty()),
  usedUp,
  keepForUs: (limit, state, nowUs) => Math.max(0, forgottenUs(limit, state) - nowUs),
  isUncharged: (_limit, state) => isUncharged(state),
  strikes: report => new StrikeReports(report),
  rows: () => new ObjectRows(empty),
  wire: {
    kind: 'ban',
    numbers: ({ limit, withinUs, forUs }) => [limit, withinUs, forUs.join('/')],
    mostLeft: limit => limit.limit,
    charged(_limit, left, _nowUs, out) {
      out.waitUs = 0
      out.remaining = left
      out.resetAfterUs = 0
      out.chargedAtUs = NOT_CHARGED
    },
    decided(limit, state, units, nowUs, isCharged, out) {
      const [level, strikes, sinceUs] = state.map(Number) as [number, number, number]
      decide(limit, { level, strikes, sinceUs }, units, nowUs, isCharged, out)
    },
  },
  toJSON() {
    return this.name
  },
}

/**
 * Creates the `ban` of a policy: who is denied too often is banned for a while, and for longer each time.
 *
 * @example
 * ban({ after: 5, within: '1m', for: ['1m', '10m', '1h', '1d'] })
 */
export function ban(options: BanOptions): BanLimit {
  return parse(options)
}
