import { NEVER } from '../../algorithms/algorithm.js'
import type { Answer, Check, Question, Refund, Verdict } from '../../engine/question.js'
import { isSingle, onlyCheckOf, SingleAnswer } from '../../engine/single-question.js'
import { HeadgateError } from '../../errors/headgate-error.js'
import { printable } from '../../errors/shown-text.js'
import { integerOf, ReplyReader, replyError } from './reply.js'

/** Decodes the answers in a reply; a question that failed alone is an error in its place. */
export function decodeAnswers(
  reply: unknown,
  questions: readonly Question[],
): readonly (Answer | HeadgateError)[] {
  const reader = new ReplyReader(reply)
  const nowUs = reader.integer(0)
  const answers: (Answer | HeadgateError)[] = []
  for (const question of questions) {
    const only = onlyCheckOf(question)
    if (only !== null) answers.push(decodeSingle(reader, only, isSingle(question), nowUs))
    else answers.push(decodeAnswer(reader, question, nowUs))
  }
  reader.end()
  return answers
}

function decodeSingle(
  reader: ReplyReader,
  check: Check,
  isOneObject: boolean,
  nowUs: number,
): Answer | HeadgateError {
  const value = reader.next()
  if (isOneObject && !Array.isArray(value)) {
    const { remaining, resetAfterUs } = afterCharge(value, check, nowUs)
    return new SingleAnswer(remaining, 0, resetAfterUs, nowUs, undefined)
  }
  const verdict = isFailure(value) ? keyError(value) : decodeVerdict(value, check, nowUs)
  if (verdict instanceof HeadgateError) return verdict
  if (!isOneObject) return { charged: verdict.allowed ? 0 : -1, verdicts: [[verdict]], shadow: [] }
  const { remaining, retryAfterUs, resetAfterUs, chargedAtUs } = verdict
  return new SingleAnswer(remaining, retryAfterUs, resetAfterUs, chargedAtUs, undefined)
}

/** Decodes the units given back, in the order of the refunds. */
export function decodeRefunds(reply: unknown, refunds: readonly Refund[]): readonly number[] {
  const reader = new ReplyReader(reply)
  const units = refunds.map(refund => Math.max(0, reader.integer(UNREADABLE, Math.max(0, refund.units))))
  reader.end()
  return units
}

/** Decodes whether each place is held, in the order of the renewals. */
export function decodeRenewals(reply: unknown, count: number): readonly boolean[] {
  const reader = new ReplyReader(reply)
  const held = Array.from({ length: count }, () => reader.integer(UNREADABLE, 1) === 1)
  reader.end()
  return held
}

/** What scripts that change a state say of one that cannot be read. */
const UNREADABLE = -2

function decodeAnswer(reader: ReplyReader, question: Question, nowUs: number): Answer | HeadgateError {
  const first = reader.next()
  if (isFailure(first)) return keyError(first)
  // An index beyond them would look like a question without limits, and pass.
  const charged = integerOf(first, -1, question.alternatives.length - 1)
  const looked = charged < 0 ? question.alternatives : question.alternatives.slice(0, charged + 1)
  const verdictOf = (check: Check): Verdict => decodeVerdict(reader.next(), check, nowUs)
  const verdicts = looked.map(checks => checks.map(verdictOf))
  const denial = verdicts[charged]?.find(({ allowed }) => !allowed)
  if (denial !== undefined) throw replyError('room in every limit that was charged', denial.retryAfterUs)
  return { charged, verdicts, shadow: question.shadow.map(verdictOf) }
}

/**
 * Decodes what a charge at the time of the call left; or wait, remaining, reset and time charged. See
 * lua/decide.lua.
 */
function decodeVerdict(value: unknown, check: Check, nowUs: number): Verdict {
  if (!Array.isArray(value)) {
    return { allowed: true, retryAfterUs: 0, chargedAtUs: nowUs, ...afterCharge(value, check, nowUs) }
  }
  const reader = new ReplyReader(value)
  const waitUs = reader.integer(-1)
  const remaining = reader.integer(0, check.limit.limit)
  const resetAfterUs = reader.integer(0)
  const chargedAtUs = reader.integer(-1)
  reader.end()
  return {
    allowed: waitUs === 0,
    remaining,
    retryAfterUs: waitUs === -1 ? NEVER : waitUs,
    resetAfterUs,
    chargedAtUs: chargedAtUs === -1 ? null : chargedAtUs,
  }
}

/** What follows from what a charge left of a limit, which is at most all of it. */
function afterCharge(
  value: unknown,
  { limit }: Check,
  nowUs: number,
): Pick<Verdict, 'remaining' | 'resetAfterUs'> {
  const { wire } = limit.algorithm
  const mostLeft = wire.mostLeft(limit)
  if (mostLeft === null) throw replyError('a list', value)
  const left = integerOf(value, 0, mostLeft)
  return { remaining: wire.remaining(limit, left), resetAfterUs: wire.resetAfterUs(limit, left, nowUs) }
}

/** A question whose state could not be read is a list with the error's text. */
function isFailure(value: unknown): value is [unknown] {
  return Array.isArray(value) && value.length === 1
}

const MAX_SHOWN = 200

function keyError([text]: [unknown]): HeadgateError {
  if (typeof text !== 'string') return replyError('a text', text)
  const shown = printable(text.slice(0, MAX_SHOWN))
  return new HeadgateError('ERR_HEADGATE_STORE_KEY', `redis: the state of a key cannot be read: ${shown}`)
}
