/** The statuses of gRPC that are answered here. */
export const STATUS = {
  ok: 0,
  invalidArgument: 3,
  notFound: 5,
  resourceExhausted: 8,
  unimplemented: 12,
  internal: 13,
  unavailable: 14,
} as const

/** Ends a call with a status of gRPC other than OK. */
export class CallError extends Error {
  readonly status: number

  constructor(status: number, details: string) {
    super(details)
    this.name = 'CallError'
    this.status = status
  }
}
