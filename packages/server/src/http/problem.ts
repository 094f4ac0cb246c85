import { STATUS_CODES } from 'node:http'
import type { HeaderField } from 'headgate'

/** A refusal of our own, before any policy was asked: status, and a sentence that says why. */
export interface Refusal {
  readonly status: number
  readonly detail: string
  /** Which part of the request was wrong, where it has a name. */
  readonly field?: string
  readonly headers?: readonly HeaderField[]
}

/** A complete response, ready to be sent. */
export interface Answer {
  readonly status: number
  readonly headers: readonly HeaderField[]
  readonly body: string
}

/** The problem response (RFC 9457) to a refusal. */
export function problemAnswer({ status, detail, field, headers = [] }: Refusal): Answer {
  const body = { type: 'about:blank', title: STATUS_CODES[status] ?? 'Error', status, detail, field }
  return {
    status,
    headers: [['Content-Type', 'application/problem+json'], ['Cache-Control', 'no-store'], ...headers],
    body: `${JSON.stringify(body)}\n`,
  }
}

/** A JSON response. */
export function jsonAnswer(status: number, value: unknown): Answer {
  return {
    status,
    headers: [
      ['Content-Type', 'application/json'],
      ['Cache-Control', 'no-store'],
    ],
    body: `${JSON.stringify(value)}\n`,
  }
}
