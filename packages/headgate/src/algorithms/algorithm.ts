/**
 * An algorithm owns everything there is to know about itself: its options, its numbers, its arithmetic, its states in memory
 * and on the wire, its words. Nobody else compares names: a limit carries its algorithm.
 *
 * The arithmetic is pure: a limit, a state and a time in integer microseconds. It is the specification: the embedded
 * store calls it, the Lua scripts translate it.
 */

/** The wait of a request whose cost is above the capacity: no wait is long enough. */
export const NEVER = Number.POSITIVE_INFINITY
/** The time of a charge that was not made. */
export const NOT_CHARGED = -1
/** The largest limit, capacity or cost. */
export const MAX_UNITS = 2 ** 32 - 1
/** The longest list of bans, and so the highest level that a store can tell. */
export const MOST_BANS = 20

/**
 * One rule of arithmetic: an algorithm and its numbers, validated when it was made. `id` names algorithm and window,
 * never the quota, so that a changed quota keeps the usage.
 */
export interface Limit {
  readonly algorithm: Algorithm
  readonly id: string
  /** Units that can be used at once: the limit of a window, the capacity of a bucket, permits. */
  readonly limit: number
  /** The quota that headers advertise; differs from `limit` if a burst consists of two limits. */
  readonly quota: Quota
  /** Whether it counts requests, whatever they cost. */
  readonly counts?: 'requests'
  /** How units may be taken in advance; the numbers already allow for it (`Leasing.strict`). */
  readonly lease?: Lease
}

/** The numbers a client is told: `limit` per `windowUs`, of which at most `burst` at once. */
export interface Quota {
  readonly limit: number
  /** For a concurrency limit: the longest a permit is held without being renewed. */
  readonly windowUs: number
  readonly burst: number | null
  /** The thing counted, if not units in a window. */
  readonly unit?: 'concurrent-requests' | 'strikes'
}

/** How a limit may be leased. */
export interface Lease {
  /** The most units taken at once. */
  readonly max: number
  readonly ttlUs: number
}

/** Where a decision writes its numbers. A pending check is one, so that nothing is allocated to carry a result. */
export interface Outcome {
  /** 0 if the units fit; `NEVER` if they are above the limit. */
  waitUs: number
  /** Units left, after the charge if it was made. */
  remaining: number
  /** Until everything is available again. */
  resetAfterUs: number
  /** The time the charge counts at; `NOT_CHARGED` if none was made. */
  chargedAtUs: number
  /**
   * What is told beside the numbers, or null: of a quota the parts that the charge has reached, in percent, of those that events
   * tell; of a ban how many there were.
   */
  told?: readonly number[] | null
}

/** The states of one limit in memory, by row number. */
export interface Rows<S = unknown> {
  /** Shows the state of a row, to be read and written in place; valid until the next call. */
  at(row: number): S
  /** Makes a row the state of a key nobody has asked for, and shows it. */
  create(row: number): S
  /** Writes a state into a row that was just created. */
  write(row: number, state: S): void
  clear(row: number): void
}

/** How a limit is written for the Lua scripts, and how their replies about it are read. */
export interface Wire<L extends Limit = Limit> {
  /** `@kind` of its Lua file. */
  readonly kind: string
  /** Its numbers, in the order in which the Lua file names them. */
  numbers(limit: L): readonly (number | string)[]
  /** The last of them if it changes with the time of the server: it is sent with every call, and never part of a script's text. */
  sent?(limit: L, serverUs: number): string
  /** The most that a charge can leave; null if a reply never says just what was left. */
  mostLeft(limit: L): number | null
  /** Writes down a charge of `units` that was made at `nowUs` and left this much. */
  charged(limit: L, left: number, nowUs: number, out: Outcome, units: number): void
  /** Writes down what follows from the state that the script read (`@state`), and whether it then charged the units. */
  decided(limit: L, state: StoredState, units: number, nowUs: number, isCharged: boolean, out: Outcome): void
  /** The reply of `@alone`; left out if the Lua file has no such section. */
  readonly alone?: AloneReply<L>
}

/** A state as a script tells it: whole numbers, and texts. */
export type StoredState = readonly (number | string)[]

/** The one integer that a script replies to a lone check. */
export interface AloneReply<L extends Limit = Limit> {
  /** Whether the numbers of a limit leave room for it. */
  isPossible(limit: L): boolean
  /** Writes the charge down; `serverUs` is the server's clock as well as it is known. Returns whether the reply can be one. */
  read(limit: L, reply: number, serverUs: number, out: Outcome, units: number): boolean
}

/** The longest lease, as a part of the window or of the time a bucket takes to fill. */
export const LEASE_PARTS = 20

/**
 * Leases: a process takes n units of a hot key at once and spends them by itself. They are charged when they are taken,
 * so what is spent in any interval of length τ was granted in one of length τ + TTL. Each limit is made stricter by
 * just that much, for every request; each algorithm says beside its `strict` how, and why that is enough.
 *
 * A grant is an ordinary charge on such a limit, and giving it back a refund.
 */
export interface Leasing<L extends Limit = Limit> {
  /** The longest time for which units may be leased, in microseconds. */
  longestUs(limit: L): number
  /** The span of which a lease may be a part, in words: `the window`. */
  readonly span: string
  /** The limit so much stricter that what is spent within the lease's time keeps the promise of the original. */
  strict(limit: L, lease: Lease): L
  /** How long a grant that was charged at this time may be spent. */
  lastsUs(limit: L, lease: Lease, chargedAtUs: number): number
}

/** Denials that are charged to a ban. */
export interface Strike<C> {
  readonly check: C
  readonly units: number
  /** Whether the share of this process denied, because the store could not be asked. */
  readonly isLocal: boolean
}

/** Charges strikes, and calls `done` when that is over, well or not. */
export type ReportStrikes<C> = (strikes: readonly Strike<C>[], done: () => void) => void

/** See `Algorithm.strikes`. */
export interface Strikes<C> {
  /** Called for every decision that limits beside a ban were asked for. */
  saw(check: SeenCheck<C>): void
}

/** What is to be known of a decided check. */
export interface SeenCheck<C> {
  readonly plan: { readonly limits: readonly { readonly name: string; readonly limit: Limit }[] }
  readonly source: string | null
  wait(index: number): number
  subjectOf(index: number): string
  scopeOf(index: number): string
  checkOf(index: number): C
}

/** See `Algorithm.account`. */
export interface Accounting<L extends Limit = Limit, S = unknown> {
  /** Adds units, for good or for this period. */
  credit(limit: L, state: S, units: number, isLasting: boolean, nowUs: number): void
  usage(limit: L, state: S, nowUs: number): Usage
  /** The options that tell accounts apart: with another value of one, another account begins, of which nothing is used. */
  readonly apart: readonly string[]
  /** The part of the limit that falls to a day. */
  perDay(limit: L): number
  /** The state that a script told. */
  stateOf(stored: StoredState): S
}

/** What was used of a quota, and what is left. Times are Unix milliseconds. */
export interface Usage {
  readonly limit: number
  readonly per: string
  readonly timeZone: string
  /** The period, by the clock of the store. */
  readonly startsAt: number
  readonly endsAt: number
  /** All units that were charged in it. */
  readonly used: number
  readonly remaining: number
  /** Credits that are left, of those that last. */
  readonly credits: number
  /** Units that were credited for this period. */
  readonly periodCredits: number
  /** Units that were carried over from the period before. */
  readonly carriedOver: number
  /** Of `used`, what was paid with credits that last. */
  readonly paidWithCredits: number
  /** Of `used`, what was beyond limit and credits. */
  readonly overage: number
  readonly previous: UsageBefore
}

/** What was used in the period before. */
export interface UsageBefore {
  readonly startsAt: number
  readonly endsAt: number
  readonly used: number
  readonly paidWithCredits: number
  readonly overage: number
}

/** How a caller stands, as a store told it. */
export interface Standing {
  readonly remaining: number
  /** 0 if a unit is free. */
  readonly waitMs: number
  readonly resetAfterMs: number
  readonly told: readonly number[] | null
}

/** How a caller stands, for operators. */
export interface StandingTold {
  readonly text: string
  readonly ban: BanStanding
}

/** How a caller stands with a ban that grows. */
export interface BanStanding {
  /** The step of `stepsMs` that it is at, or was at last; 0 if it was never banned, or that is forgotten. */
  readonly level: number
  /** How long each ban lasts. */
  readonly stepsMs: readonly number[]
  /** Denials since, of which `after` are the next ban. */
  readonly strikes: number
  /** How long the ban still lasts; 0 if none does. */
  readonly bannedForMs: number
}

/** What an option of a policy file may be. */
export type OptionValue = string | number | readonly string[] | { readonly [name: string]: number }

/** One option of an algorithm as a policy file has it. */
export interface OptionField {
  readonly kind:
    | 'units'
    | 'permits'
    | 'strikes'
    | 'duration'
    | 'durations'
    | 'rate'
    | 'parts'
    | 'period'
    | 'timeZone'
    | 'anchor'
    | 'rollover'
    | 'overage'
    | 'counts'
    | 'name'
  /** What it says, for the reference. */
  readonly text: string
  readonly required?: true
}

/** See the top of this file. Methods, so that an `Algorithm<CounterLimit, CounterState>` is an `Algorithm`. */
export interface Algorithm<L extends Limit = Limit, S = unknown> {
  /** As policy files and operators know it: `token-bucket`. */
  readonly name: string

  // Options.
  readonly fields: Readonly<Record<string, OptionField>>
  /** Options that are valid, among which each option of a file is tried. */
  readonly sample: Readonly<Record<string, unknown>>
  /** Makes the limit of these options; throws a HeadgateError that names the field for any other. */
  parse(options: unknown): L
  /** The limit as a policy file would have it: `algorithm`, by the name that the file uses, and its options. */
  optionsOf(limit: L): Readonly<Record<string, OptionValue>>
  /** The algorithm and its numbers in words, for `explain`. */
  describe(limit: L): string
  /** How a caller stands, in words, for `inspect`; left out where that is what is left, and when more comes. */
  standing?(limit: L, now: Standing, words: (ms: number) => string): StandingTold

  // Other numbers. The id stays, so that usage counted under the old numbers counts under the new ones.
  /** The limit with `units` units; a bucket refills faster or slower by `factor`. */
  resize(limit: L, units: number, factor: number): L
  /** The part of the limit that one of `processes` may give away by itself. */
  share(limit: L, processes: number): L
  /** `part` of `of` of the limit, rounded down, for a region. */
  part(limit: L, part: number, of: number): L
  /** A limit that is never used up and soon forgotten, to probe with. */
  probe(limit: L): L
  /** How units may be taken in advance; null if they may not be. */
  readonly lease: Leasing<L> | null
  /** The most units admitted in any interval of this length; infinite if not known. */
  mostIn(limit: L, intervalUs: number): number
  /** Units admitted a second in the long run; infinite for permits. */
  ratePerSecond(limit: L): number
  /** Whether a stricter limit beside it leaves nothing for this one to deny. */
  isCoveredBy(limit: L, stricter: Limit): boolean

  // Arithmetic on one state.
  /** The state of a key nobody has asked for. */
  empty(): S
  /**
   * Charges `units` if they fit and `mayCharge`, and writes the numbers to `out` either way. 0 units ask whether anything is
   * owed, and charge nothing. A denial changes nothing.
   */
  decide(limit: L, state: S, units: number, nowUs: number, mayCharge: boolean, out: Outcome): void
  /**
   * Takes back up to `units` charged at `chargedAtUs`, or the oldest ones if that is null. Returns how many: 0 for
   * charges from before a reset. A bucket takes back fewer of those held in advance since `heldSinceUs`.
   * Negative units were used already and are charged whether they fit or not (returns 0; of a ban, its level if they began
   * one); never more than twice the limit is left used, so that nobody is shut out for good.
   */
  refund(
    limit: L,
    state: S,
    units: number,
    chargedAtUs: number | null,
    nowUs: number,
    heldSinceUs?: number,
  ): number
  /** What of `units` charged at `chargedAtUs` has come back by itself since, at most: a bucket refills. */
  refilled(limit: L, chargedAtUs: number, nowUs: number): number
  /**
   * Forgets what was used. Earlier charges belong to a former life of the key and are never given back to the new
   * one. A charge in the same microsecond cannot be distinguished and counts as one of the former life.
   */
  reset(limit: L, state: S, nowUs: number): void
  /**
   * A stand-in for a state of which only two things are known: nothing was left, and it is empty at `untilUs`. It never
   * has more left than the original.
   */
  usedUp(limit: L, untilUs: number, nowUs: number): S
  /** How long the state can still matter; after that it may be forgotten without changing any verdict. */
  keepForUs(limit: L, state: S, nowUs: number): number
  /** Whether nothing was ever charged to the state of a key that was just created. */
  isUncharged(limit: L, state: S, nowUs: number): boolean
  /**
   * Holds the permits taken at `takenAtUs` longer, or takes them again if they are gone and there is room. Returns whether they
   * are held. Only of what is held until it is released: such units come free at any time, so they are not leased, charged
   * late or cached as denied.
   */
  renew?(limit: L, state: S, units: number, takenAtUs: number, nowUs: number): boolean
  /** How long a permit is held without being renewed; for permits only. */
  holdForUs?(limit: L): number
  /**
   * Makes what sees the denials of a process and reports them as strikes. Only of what these denials charge, and not asking:
   * it belongs to one subject, has no numbers that an operator could raise, and binds only while it lasts.
   */
  strikes?<C>(report: ReportStrikes<C>): Strikes<C>

  /** What is kept like an account: units can be added, and what was used is told. Only of quotas. */
  readonly account?: Accounting<L, S>

  // Where states are kept.
  rows(): Rows<S>
  readonly wire: Wire<L>
  /** The name, so that limits can be printed and compared as data. */
  toJSON(): string
}

/**
 * Makes an algorithm of parts that others have, too. In a call that is marked as pure, because bundlers cannot see that spreading
 * an object has no effect, and would keep the algorithm for programs that use another.
 */
export function defineAlgorithm<L extends Limit, S>(make: () => Algorithm<L, S>): Algorithm<L, S> {
  return make()
}

/** Whether a value is a limit that the function of an algorithm made. */
export function isLimit(value: unknown): value is Limit {
  const { id, algorithm } = (value ?? {}) as Partial<Limit>
  return typeof id === 'string' && typeof algorithm?.decide === 'function'
}
