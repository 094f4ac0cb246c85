import { type LeftLimit, remainingOf, resetAfterOf } from '../../engine/left.js'
import { NEVER } from '../../engine/limit.js'
import type { Answer, Check, Question, Verdict } from '../../engine/question.js'
import { isSingle, onlyCheckOf, SingleAnswer } from '../../engine/single-question.js'
import { HeadgateError, unexpected } from '../../errors/headgate-error.js'

/** Decodes the answers in a reply; a question that failed alone is an error in its place. */
export function decodeAnswers(
  reply: unknown,
  questions: readonly Question[],
): readonly (Answer | HeadgateError)[] {
  const reader = new ReplyReader(reply)
  const nowUs = reader.integer()
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
    const left = integerOf(value)
    const limit = leftLimitOf(check)
    return new SingleAnswer(remainingOf(limit, left), 0, resetAfterOf(limit, left, nowUs), nowUs, undefined)
  }
  const verdict = isFailure(value) ? keyError(value) : decodeVerdict(value, check, nowUs)
  if (verdict instanceof HeadgateError) return verdict
  if (!isOneObject) return { charged: verdict.allowed ? 0 : -1, verdicts: [[verdict]], shadow: [] }
  const { remaining, retryAfterUs, resetAfterUs, chargedAtUs } = verdict
  return new SingleAnswer(remaining, retryAfterUs, resetAfterUs, chargedAtUs, undefined)
}

/** Decodes the units given back, in the order of the refunds. */
export function decodeRefunds(reply: unknown, count: number): readonly number[] {
  const reader = new ReplyReader(reply)
  const units = Array.from({ length: count }, () => Math.max(0, reader.integer()))
  reader.end()
  return units
}

/** Decodes whether each place is held, in the order of the renewals. */
export function decodeRenewals(reply: unknown, count: number): readonly boolean[] {
  const reader = new ReplyReader(reply)
  const held = Array.from({ length: count }, () => reader.integer() === 1)
  reader.end()
  return held
}

function decodeAnswer(reader: ReplyReader, question: Question, nowUs: number): Answer | HeadgateError {
  const first = reader.next()
  if (isFailure(first)) return keyError(first)
  const charged = integerOf(first)
  // An index beyond them would look like a question without limits, and pass.
  if (charged < -1 || charged >= question.alternatives.length) throw replyError('an alternative', charged)
  const looked = charged < 0 ? question.alternatives : question.alternatives.slice(0, charged + 1)
  const verdictOf = (check: Check): Verdict => decodeVerdict(reader.next(), check, nowUs)
  return {
    charged,
    verdicts: looked.map(checks => checks.map(verdictOf)),
    shadow: question.shadow.map(verdictOf),
  }
}

/**
 * Decodes what a charge at the time of the call left; or wait, remaining, reset and time charged. See
 * lua/decide.lua.
 */
function decodeVerdict(value: unknown, check: Check, nowUs: number): Verdict {
  if (!Array.isArray(value)) {
    const left = integerOf(value)
    const limit = leftLimitOf(check)
    return {
      allowed: true,
      remaining: remainingOf(limit, left),
      retryAfterUs: 0,
      resetAfterUs: resetAfterOf(limit, left, nowUs),
      chargedAtUs: nowUs,
    }
  }
  const reader = new ReplyReader(value)
  const waitUs = reader.integer()
  const remaining = reader.integer()
  const resetAfterUs = reader.integer()
  const chargedAtUs = reader.integer()
  reader.end()
  return {
    allowed: waitUs === 0,
    remaining,
    retryAfterUs: waitUs === -1 ? NEVER : waitUs,
    resetAfterUs,
    chargedAtUs: chargedAtUs === -1 ? null : chargedAtUs,
  }
}

function leftLimitOf({ limit }: Check): LeftLimit {
  if (limit.algorithm === 'concurrency') throw replyError('a list', 'an integer')
  return limit
}

/** A question whose state could not be read is a list with the error's text. */
function isFailure(value: unknown): value is [string] {
  return Array.isArray(value) && value.length === 1
}

function keyError([text]: [string]): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_STORE_KEY', `redis: the state of a key cannot be read: ${text}`)
}

/** Reads a flat reply in order, and refuses one that breaks the script's contract. */
class ReplyReader {
  readonly #reply: readonly unknown[]
  #next = 0

  constructor(reply: unknown) {
    if (!Array.isArray(reply)) throw replyError('a list', reply)
    this.#reply = reply
  }

  next(): unknown {
    return this.#reply[this.#next++]
  }

  integer(): number {
    return integerOf(this.next())
  }

  end(): void {
    if (this.#next !== this.#reply.length) throw replyError(`${this.#next} values`, this.#reply)
  }
}

function integerOf(value: unknown): number {
  // Clients can be configured to return integers as text.
  const number = typeof value === 'number' ? value : Number(value)
  if (value === null || value === '' || !Number.isSafeInteger(number)) throw replyError('an integer', value)
  return number
}

function replyError(expected: string, got: unknown): HeadgateError {
  return unexpected('ERR_HEADGATE_STORE_REPLY', 'redis', `${expected} in the script's reply`, got)
}
