import { NEVER } from '../../engine/limit.js'
import type { Answer, Check, Question, Verdict } from '../../engine/question.js'
import { SingleAnswer, SingleQuestion } from '../../engine/single.js'
import { HeadgateError, show } from '../../errors.js'
import { singleCheckOf } from './encode.js'

/** A question the script could not answer, because a key of it holds something else. */
const UNREADABLE = -2
/** Of a question of one check; below it lies the wait. */
const WOULD_NEVER_FIT = -3

/** The answers in a reply of decide.lua or peek.lua; a question that failed by itself is an error in its place. */
export function decodeAnswers(
  reply: unknown,
  questions: readonly Question[],
): readonly (Answer | HeadgateError)[] {
  const reader = new ReplyReader(reply)
  const answers: (Answer | HeadgateError)[] = []
  for (const question of questions) {
    const first = reader.integer()
    if (first === UNREADABLE) answers.push(keyError(reader.text()))
    else if (singleCheckOf(question) !== null) answers.push(decodeSingle(reader, question, first))
    else answers.push(decodeAnswer(reader, question, first))
  }
  reader.end()
  return answers
}

/** `first` is the time charged, or says why nothing was: see lua/include/verdicts.lua. */
function decodeSingle(reader: ReplyReader, question: Question, first: number): Answer {
  const waitUs = first === WOULD_NEVER_FIT ? NEVER : Math.max(0, WOULD_NEVER_FIT - first)
  const remaining = reader.integer()
  const resetAfterUs = reader.integer()
  const chargedAtUs = first < 0 ? null : first
  const answer = new SingleAnswer(remaining, waitUs, resetAfterUs, chargedAtUs, undefined)
  if (question instanceof SingleQuestion) return answer
  const { allowed, charged } = answer
  const verdict = { allowed, remaining, retryAfterUs: waitUs, resetAfterUs, chargedAtUs }
  return { charged, verdicts: [[verdict]], shadow: [] }
}

/** The units given back, in the order of the refunds. */
export function decodeRefunds(reply: unknown, count: number): readonly number[] {
  const reader = new ReplyReader(reply)
  const units = Array.from({ length: count }, () => Math.max(0, reader.integer()))
  reader.end()
  return units
}

function decodeAnswer(reader: ReplyReader, question: Question, charged: number): Answer {
  const looked = charged < 0 ? question.alternatives : question.alternatives.slice(0, charged + 1)
  return {
    charged,
    verdicts: looked.map(checks => decodeVerdicts(reader, checks)),
    shadow: decodeVerdicts(reader, question.shadow),
  }
}

function decodeVerdicts(reader: ReplyReader, checks: readonly Check[]): Verdict[] {
  return checks.map(() => {
    const waitUs = reader.integer()
    const remaining = reader.integer()
    const resetAfterUs = reader.integer()
    const chargedAtUs = reader.integer()
    return {
      allowed: waitUs === 0,
      remaining,
      retryAfterUs: waitUs === -1 ? NEVER : waitUs,
      resetAfterUs,
      chargedAtUs: chargedAtUs === -1 ? null : chargedAtUs,
    }
  })
}

function keyError(text: string): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_STORE_KEY', `redis: the state of a key cannot be read: ${text}`)
}

/** Reads a flat reply in order, and refuses one that is not as the script promises. */
class ReplyReader {
  readonly #reply: readonly unknown[]
  #next = 0

  constructor(reply: unknown) {
    if (!Array.isArray(reply)) throw replyError('a list', reply)
    this.#reply = reply
  }

  integer(): number {
    const value = this.#reply[this.#next++]
    // Clients can be set up to hand integers over as text.
    const number = typeof value === 'number' ? value : Number(value)
    if (value === null || value === '' || !Number.isSafeInteger(number)) throw replyError('an integer', value)
    return number
  }

  text(): string {
    return String(this.#reply[this.#next++])
  }

  end(): void {
    if (this.#next !== this.#reply.length) throw replyError(`${this.#next} values`, this.#reply)
  }
}

function replyError(expected: string, got: unknown): HeadgateError {
  return new HeadgateError(
    'ERR_HEADGATE_STORE_REPLY',
    `redis: expected ${expected} in the script's reply; got ${show(got)}`,
  )
}
