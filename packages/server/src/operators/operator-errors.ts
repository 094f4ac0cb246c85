/** Why a client could not do what was asked, and whose fault that is. */
import type { Mistake } from 'headgate/internal'

/** The request was rejected, with what is wrong with it as the decision API says it: it has to change. */
export class RejectedError extends Error {
  override readonly name = 'RejectedError'
  readonly field: string | undefined
  readonly expected: string | undefined
  readonly got: string | undefined
  readonly suggestion: string | undefined

  constructor(message: string, { field, expected, got, suggestion }: Partial<Mistake>) {
    super(message)
    this.field = field
    this.expected = expected
    this.got = got
    this.suggestion = suggestion ?? undefined
  }
}

/** Nothing answers, or it says that it cannot now: the same command may work in a moment. */
export class UnavailableError extends Error {
  override readonly name = 'UnavailableError'
}

/** Something answers that is not Headgate. */
export class NotHeadgateError extends Error {
  override readonly name = 'NotHeadgateError'
}
