import { type Decision, decisionHeaders, decisionProblem } from 'headgate'

/** A decision as the API tells it: its own fields, and the response that a service would give its client by it. */
export type DecisionAnswer = ReturnType<Decision['toJSON']> & {
  /** 200, 429, or 503 where limits could not be looked at and such requests are refused. */
  readonly status: 200 | 429 | 503
  /** By their names: ready to be copied to the response. */
  readonly headers: Readonly<Record<string, string>>
  /** The reference for `/v1/refund`, where it was asked for, and for `/v1/release`, where a place was taken. */
  readonly reference?: string
}

export function decisionAnswer(decision: Decision, reference: string | null): DecisionAnswer {
  return {
    ...decision.toJSON(),
    status: decision.allowed ? 200 : decisionProblem(decision).status,
    headers: Object.fromEntries(decisionHeaders(decision)),
    ...(reference !== null && { reference }),
  }
}
