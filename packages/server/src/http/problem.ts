import { type ServerResponse, STATUS_CODES } from 'node:http'
import type { HeaderField } from 'headgate/internal'
import { printable } from 'headgate/internal'

/** A rejection of our own, before any policy was asked: status, and a sentence that says why. */
export interface Rejection {
  readonly status: number
  readonly detail: string
  /** The part of the request that was wrong, if it has a name; what it should be, and what came. */
  readonly field?: string | undefined
  readonly expected?: string | undefined
  readonly got?: string | undefined
  /** The known name that was probably meant. */
  readonly suggestion?: string | null | undefined
  /** A word for programs, if a status has several reasons. */
  readonly reason?: string
  readonly headers?: readonly HeaderField[]
}

/** A complete response, ready to be sent. */
export interface HttpAnswer {
  readonly status: number
  readonly headers: readonly HeaderField[]
  readonly body: string
  /** Why it was given, in a word and in a sentence, if it is an answer of our own. */
  readonly reason?: string | undefined
  readonly detail?: string
  /** The change the request made, in words, for the audit trail. */
  readonly change?: string
  /** Writes the body of an unbounded response, instead of `body`. */
  stream?(res: ServerResponse): void
  /** Called if it was not sent, because its client had gone. */
  onUnsent?(): void
}

/** Returns the problem response (RFC 9457) to a rejection. */
export function problemAnswer({ status, detail, headers = [], ...more }: Rejection): HttpAnswer {
  const title = STATUS_CODES[status] ?? 'Error'
  const { field, expected, got, suggestion, reason } = more
  const wrong = { field, expected, got, suggestion: suggestion ?? undefined }
  const body = { type: 'about:blank', title, status, detail, ...wrong, reason }
  return {
    status,
    headers: [['Content-Type', 'application/problem+json'], ['Cache-Control', 'no-store'], ...headers],
    body: `${printable(JSON.stringify(body))}\n`,
    reason,
    detail,
  }
}

/** Returns a JSON response. */
export function jsonAnswer(status: number, value: unknown): HttpAnswer {
  return {
    status,
    headers: [
      ['Content-Type', 'application/json'],
      ['Cache-Control', 'no-store'],
    ],
    body: `${printable(JSON.stringify(value))}\n`,
  }
}
