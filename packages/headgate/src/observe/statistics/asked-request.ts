import type { RequestFacts } from '../../policy/request-facts.js'

/** What is kept of a request: nothing that may hold a secret, and little. */
export interface AskedRequest {
  readonly method: string | null
  /** Without its query; cut if it is long. */
  readonly path: string | null
  readonly requestId: string | null
}

const MAX_LENGTH = 200

export function askedRequest(facts: RequestFacts | null): AskedRequest {
  return {
    method: kept(facts?.method),
    path: kept(facts?.path?.split(/[?#]/, 1)[0]),
    requestId: kept(facts?.requestId),
  }
}

/** A copy: a part of a text keeps the whole of it in memory. */
function kept(text: string | undefined): string | null {
  return text === undefined ? null : ` ${text.slice(0, MAX_LENGTH)}`.slice(1)
}
