import { type Limit, NEVER, NOT_CHARGED } from '../../algorithms/algorithm.js'
import type { Refund } from '../../check/check.js'
import type { PendingCheck } from '../../check/pending-check.js'
import type { NamedLimit } from '../../check/plan.js'
import { HeadgateError } from '../../errors/headgate-error.js'
import { printable } from '../../errors/shown-text.js'
import { integerOf, ReplyReader, replyError } from './reply.js'

/**
 * Writes the numbers of a reply into its checks. Returns the errors of those that failed alone, in order; null if none
 * did. Throws for a reply that breaks the script's contract (see lua/decide.lua).
 */
export function decodeChecks(
  reply: unknown,
  checks: readonly PendingCheck[],
): readonly (HeadgateError | null)[] | null {
  const reader = new ReplyReader(reply)
  const nowUs = reader.integer(0)
  let errors: (HeadgateError | null)[] | null = null
  for (let index = 0; index < checks.length; index++) {
    const check = checks[index] as PendingCheck
    const error = check.asked.isSingle
      ? decodeSingle(reader, check, nowUs)
      : decodeSeveral(reader, check, nowUs)
    if (error === null) continue
    errors ??= new Array(checks.length).fill(null)
    errors[index] = error
  }
  reader.end()
  return errors
}

function decodeSingle(reader: ReplyReader, check: PendingCheck, nowUs: number): HeadgateError | null {
  const value = reader.next()
  if (isFailure(value)) return keyError(value)
  decodeVerdict(value, check, 0, nowUs)
  check.charged = check.waitUs === 0 ? 0 : -1
  return null
}

function decodeSeveral(reader: ReplyReader, check: PendingCheck, nowUs: number): HeadgateError | null {
  const { asked: plan } = check
  const first = reader.next()
  if (isFailure(first)) return keyError(first)
  // An index beyond them would look like a check without limits, and pass.
  const charged = integerOf(first, -1, plan.ends.length - 1)
  const looked = charged < 0 ? plan.shadowFrom : (plan.ends[charged] as number)
  for (let index = 0; index < looked; index++) decodeVerdict(reader.next(), check, index, nowUs)
  for (let index = plan.shadowFrom; index < plan.limits.length; index++) {
    decodeVerdict(reader.next(), check, index, nowUs)
  }
  if (charged >= 0) rejectDenials(check, plan.start(charged), looked)
  check.charged = charged
  return null
}

function rejectDenials(check: PendingCheck, from: number, end: number): void {
  for (let index = from; index < end; index++) {
    if (check.wait(index) > 0) throw replyError('room in every limit that was charged', check.wait(index))
  }
}

/** Decodes what a charge at the time of the call left; or wait, remaining, reset and time charged. */
function decodeVerdict(value: unknown, check: PendingCheck, index: number, nowUs: number): void {
  const { limit } = check.asked.limits[index] as NamedLimit
  if (Array.isArray(value)) decodeNumbers(value, check, limit)
  else decodeLeft(value, check, limit, nowUs)
  check.keep(index)
}

/** What a charge left of a limit is less than all of it. */
function decodeLeft(value: unknown, check: PendingCheck, limit: Limit, nowUs: number): void {
  const { wire } = limit.algorithm
  const mostLeft = wire.mostLeft(limit)
  if (mostLeft === null) throw replyError('a list', value)
  const left = integerOf(value, 0, mostLeft)
  check.waitUs = 0
  check.remaining = wire.remaining(limit, left)
  check.resetAfterUs = wire.resetAfterUs(limit, left, nowUs)
  check.chargedAtUs = nowUs
}

function decodeNumbers(value: unknown, check: PendingCheck, limit: Limit): void {
  const reader = new ReplyReader(value)
  const waitUs = reader.integer(-1)
  check.waitUs = waitUs === -1 ? NEVER : waitUs
  check.remaining = reader.integer(0, limit.limit)
  check.resetAfterUs = reader.integer(0)
  const chargedAtUs = reader.integer(-1)
  check.chargedAtUs = chargedAtUs === -1 ? NOT_CHARGED : chargedAtUs
  reader.end()
}

/** Decodes the units given back, in the order of the refunds. */
export function decodeRefunds(reply: unknown, refunds: readonly Refund[]): readonly number[] {
  const reader = new ReplyReader(reply)
  const units = refunds.map(refund => Math.max(0, reader.integer(UNREADABLE, Math.max(0, refund.units))))
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

/** What scripts that change a state say of one that cannot be read. */
const UNREADABLE = -2

/** A check whose state could not be read is a list with the error's text. */
function isFailure(value: unknown): value is [unknown] {
  return Array.isArray(value) && value.length === 1
}

const MAX_SHOWN = 200

function keyError([text]: [unknown]): HeadgateError {
  if (typeof text !== 'string') return replyError('a text', text)
  const shown = printable(text.slice(0, MAX_SHOWN))
  return new HeadgateError('ERR_HEADGATE_STORE_KEY', `redis: the state of a key cannot be read: ${shown}`)
}
