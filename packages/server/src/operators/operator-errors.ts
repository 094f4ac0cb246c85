/** Why a client could not do what was asked, and whose fault that is. */

/** The server or the store refused the request; `field` names the wrong part, as in the decision API. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly field: string | null

  constructor(message: string, field: string | null) {
    super(message)
    this.field = field
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
