import { MOST_BANS, NOT_CHARGED } from '../../algorithms/algorithm.js'
import type { Credit, Credited, Refund } from '../../check/check.js'
import type { PendingCheck } from '../../check/pending-check.js'
import type { NamedLimit } from '../../check/plan.js'
import { HeadgateError } from '../../errors/headgate-error.js'
import { printable } from '../../errors/shown-text.js'
import type { ChecksCall } from './encode.js'
import { integerOf, ReplyReader, replyError } from './reply.js'

/** What the replies of a server tell about its clock, and what is known of it. */
export interface ServerClock {
  /** The server's time as well as it is known, in microseconds. */
  nowUs(): number
  learn(nowUs: number): void
}

/** Errors by check, in order, of those that failed although the call succeeded. */
export type CheckErrors = Map<PendingCheck, HeadgateError>

/**
 * Writes the numbers of a reply into the checks of its call, and the errors of those that failed alone into `errors`. Throws for a
 * reply that breaks the script's contract (see lua/decide.lua and straight-line.ts).
 */
export function decodeChecks(
  reply: unknown,
  { checks, line }: ChecksCall,
  clock: ServerClock,
  errors: CheckErrors,
): void {
  if (line?.hasAlone && checks.length === 1 && !Array.isArray(reply)) {
    decodeAlone(reply, undecided(checks[0] as PendingCheck), clock)
    return
  }
  const reader = new ReplyReader(reply)
  // Everything is worked out as of the time that the script read, which comes last.
  const nowUs = reader.lastInteger(0)
  clock.learn(nowUs)
  for (const asked of checks) {
    const check = undecided(asked)
    const error =
      line !== null
        ? decodeStraight(reader, check, nowUs)
        : check.isPeek
          ? decodePeek(reader, check, nowUs)
          : decodeQuestion(reader, check, nowUs)
    if (error !== null) errors.set(asked, error)
  }
  reader.end()
}

/** A check that was given up while it waited has its decision: the reply to it is read into a copy of the question. */
function undecided(check: PendingCheck): PendingCheck {
  return check.isSettled ? check.again() : check
}

/** A lone check that was charged is one integer. */
function decodeAlone(reply: unknown, check: PendingCheck, clock: ServerClock): void {
  const { limit } = check.asked.limits[0] as NamedLimit
  const { alone } = limit.algorithm.wire
  if (!alone?.read(limit, integerOf(reply, 0), clock.nowUs(), check, check.unitsOf(0))) {
    throw replyError('what a charge can leave', reply)
  }
  check.charged = 0
}

/** All limits were charged, or none; an error comes first. */
function decodeStraight(reader: ReplyReader, check: PendingCheck, nowUs: number): HeadgateError | null {
  const { length } = check.asked.limits
  let charged = 0
  let failure: readonly unknown[] | null = null
  for (let index = 0; index < length; index++) {
    const value = reader.next()
    if (index === 0 && isFailure(value)) failure = value
    if (failure === null && decodeLimit(value, check, index, nowUs)) charged++
  }
  if (failure !== null) return keyError(failure)
  if (charged !== 0 && charged !== length) throw replyError('all limits charged or none', charged)
  check.charged = charged === 0 ? -1 : 0
  return null
}

/** The index of the alternative comes first, then all limits; those that were not looked at are 0. */
function decodeQuestion(reader: ReplyReader, check: PendingCheck, nowUs: number): HeadgateError | null {
  const { asked: plan } = check
  if (plan.limits.length === 0) {
    check.charged = 0
    return null
  }
  const first = reader.next()
  const failure = isFailure(first) ? first : null
  // An index beyond them would look like a check without limits, and pass.
  const charged = failure !== null ? -1 : integerOf(first, -1, plan.ends.length - 1)
  const looked = failure !== null ? 0 : charged < 0 ? plan.shadowFrom : (plan.ends[charged] as number)
  for (let index = 0; index < plan.limits.length; index++) {
    const value = reader.next()
    if (index < looked) decodeLimit(value, check, index, nowUs)
    else if (failure === null && index >= plan.shadowFrom) decodeShadow(value, check, index, nowUs)
  }
  if (failure !== null) return keyError(failure)
  if (charged >= 0) rejectDenials(check, plan.start(charged), looked)
  check.charged = charged
  return null
}

/** The states of all limits: the first alternative that would fit is found here. */
function decodePeek(reader: ReplyReader, check: PendingCheck, nowUs: number): HeadgateError | null {
  const { asked: plan } = check
  const values = plan.limits.map(() => reader.next())
  check.charged = -1
  for (let alternative = 0; alternative < plan.ends.length && check.charged < 0; alternative++) {
    let fits = true
    for (let index = plan.start(alternative); index < (plan.ends[alternative] as number); index++) {
      const value = values[index]
      if (isFailure(value)) return keyError(value)
      decodeLimit(value, check, index, nowUs)
      fits &&= check.waitUs === 0
    }
    if (fits) check.charged = alternative
  }
  for (let index = plan.shadowFrom; index < plan.limits.length; index++) {
    decodeShadow(values[index], check, index, nowUs)
  }
  return null
}

function rejectDenials(check: PendingCheck, from: number, end: number): void {
  for (let index = from; index < end; index++) {
    if (check.wait(index) > 0) throw replyError('room in every limit that was charged', check.wait(index))
  }
}

/**
 * Reads what a charge at the time of the call left; or whether it was charged, and the state that was read: what follows from that
 * the algorithm works out here. Returns whether it was charged.
 */
function decodeLimit(value: unknown, check: PendingCheck, index: number, nowUs: number): boolean {
  const { limit } = check.asked.limits[index] as NamedLimit
  const { wire } = limit.algorithm
  let isCharged = true
  if (Array.isArray(value)) {
    isCharged = integerOf(value[0], 0, 1) === 1
    const state = value.slice(1).map(storedValue)
    wire.decided(limit, state, check.unitsOf(index), nowUs, isCharged, check)
    if (!isPlausible(check, wire.mostLeft(limit) ?? limit.limit)) throw replyError('a state', value)
  } else {
    const mostLeft = wire.mostLeft(limit)
    if (mostLeft === null) throw replyError('a list', value)
    wire.charged(limit, integerOf(value, 0, mostLeft), nowUs, check, check.unitsOf(index))
  }
  check.keep(index)
  return isCharged
}

/** A shadow limit that cannot be read would not have denied anybody. */
function decodeShadow(value: unknown, check: PendingCheck, index: number, nowUs: number): void {
  if (isFailure(value)) check.set(index, 0, 0, 0, NOT_CHARGED)
  else decodeLimit(value, check, index, nowUs)
}

function storedValue(value: unknown): number | string {
  if (typeof value === 'string' && !/^-?\d{1,16}$/.test(value)) return value
  return integerOf(value, -1)
}

/** Whether the numbers that follow from a state are numbers, and within the limit. */
function isPlausible({ waitUs, remaining, resetAfterUs }: PendingCheck, mostLeft: number): boolean {
  return waitUs >= 0 && remaining >= 0 && remaining <= mostLeft && resetAfterUs >= 0
}

/** Decodes the units given back, in the order of the refunds; for strikes, the level of the ban that they began. */
export function decodeRefunds(reply: unknown, refunds: readonly Refund[]): readonly number[] {
  const reader = new ReplyReader(reply)
  const units = refunds.map(refund =>
    Math.max(0, reader.integer(UNREADABLE, refund.units < 0 ? MOST_BANS : refund.units)),
  )
  reader.end()
  return units
}

/** Decodes whether each permit is held, in the order of the renewals. */
export function decodeRenewals(reply: unknown, count: number): readonly boolean[] {
  const reader = new ReplyReader(reply)
  const held = Array.from({ length: count }, () => reader.integer(UNREADABLE, 1) === 1)
  reader.end()
  return held
}

/** Decodes the state of a quota after a credit. */
export function decodeCredit(reply: unknown, { check: { limit } }: Credit): Credited {
  const { account } = limit.algorithm
  if (account === undefined || !Array.isArray(reply)) throw replyError('the state of a quota', reply)
  const nowUs = integerOf(reply.at(-1), 0)
  const state = account.stateOf(reply.slice(1, -1).map(storedValue))
  return { usage: account.usage(limit, state, nowUs), isAdded: integerOf(reply[0], 0, 1) === 1 }
}

/** What scripts that change a state say of one that cannot be read. */
const UNREADABLE = -2

/** A check whose state could not be read is a list with the error's text. */
function isFailure(value: unknown): value is [unknown] {
  return Array.isArray(value) && value.length === 1
}

const MAX_SHOWN = 200

function keyError([text]: readonly unknown[]): HeadgateError {
  if (typeof text !== 'string') return replyError('a text', text)
  const shown = printable(text.slice(0, MAX_SHOWN))
  return new HeadgateError('ERR_HEADGATE_STORE_KEY', `redis: the state of a key cannot be read: ${shown}`)
}
