/** A request to the decision API that cannot be answered with a decision. Names the field that is wrong. */
export class RequestError extends Error {
  readonly status: number
  readonly field: string

  constructor(status: number, field: string, expectation: string) {
    super(`${field}: ${expectation}`)
    this.name = 'RequestError'
    this.status = status
    this.field = field
  }
}
