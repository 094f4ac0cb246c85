/**
 * Reads what scripts return. A proxy, another program or a fault can answer anything, and arithmetic on it must not:
 * whatever breaks the contract of a script is rejected here, so that the failure mode decides.
 */
import { type HeadgateError, unexpected } from '../../errors/headgate-error.js'

/** The most digits of an integer that is exact. */
const INTEGER = /^-?\d{1,16}$/

/** Reads a flat reply in order. */
export class ReplyReader {
  readonly #reply: readonly unknown[]
  #next = 0
  #end: number

  constructor(reply: unknown) {
    this.#reply = listOf(reply)
    this.#end = this.#reply.length
  }

  next(): unknown {
    return this.#reply[this.#next++]
  }

  integer(least?: number, most?: number): number {
    return integerOf(this.next(), least, most)
  }

  /** Reads the last value before the others, which are then expected to end before it. */
  lastInteger(least: number): number {
    this.#end = this.#reply.length - 1
    return integerOf(this.#reply[this.#end], least)
  }

  /** Rejects a reply that goes on. */
  end(): void {
    if (this.#next !== this.#end) throw replyError(`${this.#next} values`, this.#reply)
  }
}

/** An integer from `least` to `most`. */
export function integerOf(
  value: unknown,
  least: number = Number.MIN_SAFE_INTEGER,
  most: number = Number.MAX_SAFE_INTEGER,
): number {
  // Clients can be configured to return integers as text.
  const isText = typeof value === 'string' && INTEGER.test(value)
  const number = isText ? Number(value) : value
  if (!Number.isSafeInteger(number)) throw replyError('an integer', value)
  if ((number as number) < least || (number as number) > most) {
    throw replyError(`an integer from ${least} to ${most}`, value)
  }
  return number as number
}

/** A list of at most `most` values. */
export function listOf(value: unknown, most: number = Number.POSITIVE_INFINITY): readonly unknown[] {
  if (!Array.isArray(value)) throw replyError('a list', value)
  if (value.length > most) throw replyError(`at most ${most} values`, `${value.length} values`)
  return value
}

/** A list of at most `most` texts. */
export function textsOf(value: unknown, most: number): readonly string[] {
  return listOf(value, most).map(textOf)
}

/** A text. Clients can be configured to return one that looks like a number as a number. */
export function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  if (typeof value === 'number' || typeof value === 'boolean') return String(value)
  throw replyError('a text', value)
}

export function replyError(expected: string, got: unknown): HeadgateError {
  return unexpected('ERR_HEADGATE_STORE_REPLY', 'redis', `${expected} in the script's reply`, got)
}
