import type { Override, QuotaUsage } from 'headgate'
import type { LostSettings, Mistake, OverrideEffect } from 'headgate/internal'
import { isReference, shownName } from 'headgate/internal'
import { API_HEADER } from '../admin/endpoint.js'
import type { ShownDenial } from '../observe/denial-log.js'
import type { ServerClient } from './operator-client.js'
import { NotHeadgateError, RejectedError, UnavailableError } from './operator-errors.js'

const ANSWER_WITHIN_MS = 5_000
/** Words for the errors of `fetch`. */
const REASONS = new Map([
  ['ECONNREFUSED', 'nothing that listens there'],
  ['ENOTFOUND', 'no such host'],
  ['EAI_AGAIN', 'no such host'],
  ['UND_ERR_SOCKET', 'a connection that was closed without an answer'],
])

/**
 * Creates the client of a running `headgate serve`, by the address of its decision API (without credentials) and a
 * token of its admin port.
 */
export function httpOperatorClient(url: string, token: string | null): ServerClient {
  const expected = `expected the decision API of a running headgate at ${url}`

  async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const answer = await fetch(new URL(path, url), {
      method,
      // Headgate never redirects, and requests must not wander to another server.
      redirect: 'manual',
      signal: AbortSignal.timeout(ANSWER_WITHIN_MS),
      headers: {
        ...(token !== null && { Authorization: `Bearer ${token}` }),
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    }).catch(error => {
      throw unanswered(error, expected)
    })
    if (!answer.headers.has(API_HEADER)) {
      await answer.body?.cancel()
      const type = shownName(answer.headers.get('content-type') ?? 'no content type')
      throw new NotHeadgateError(
        `--server: ${expected}; what answers is not Headgate's decision API (status ${answer.status}, ${type})`,
      )
    }
    const value = (await answer.json()) as T & { detail?: string } & Partial<Mistake>
    if (answer.ok) return value
    throw failed(answer.status, value.detail ?? `status ${answer.status}`, value)
  }

  return {
    control: () => call('GET', '/v1/control'),
    setControl: change => call('PATCH', '/v1/control', change),
    overrides: async () => (await call<{ overrides: Override[] }>('GET', '/v1/overrides')).overrides,
    setOverride: async override =>
      (await call<{ effect: OverrideEffect }>('PUT', '/v1/overrides', override)).effect,
    previewOverride: override => call('POST', '/v1/overrides/preview', override),
    removeOverride: async target =>
      (await call<{ removed: boolean }>('DELETE', '/v1/overrides', target)).removed,
    restore: async () => (await call<{ restored: LostSettings | null }>('POST', '/v1/restore')).restored,
    clearLost: async () => (await call<{ cleared: LostSettings | null }>('DELETE', '/v1/restore')).cleared,
    decide(action, question) {
      const { subject } = question
      const asked = 'ask' in question ? question.ask : question.request
      return call('POST', `/v1/${action}`, { subject, ...asked })
    },
    inspect: (subject, options) => call('POST', '/v1/inspect', { subject, ...options }),
    async usage(subject, ask) {
      const query = new URLSearchParams({ ...ask, subject: String(subject) })
      return (await call<{ quotas: QuotaUsage[] }>('GET', `/v1/usage?${query}`)).quotas
    },
    usagePage({ of, period, cursor, limit }) {
      const query = { ...of, period, ...(cursor !== null && { cursor }), limit: String(limit) }
      return call('GET', `/v1/usage/export?${new URLSearchParams(query)}`)
    },
    credit: (subject, units, options) => call('POST', '/v1/credit', { subject, units, ...options }),
    async reset(subject, ask) {
      if (typeof subject === 'string' && isReference(subject)) {
        return void (await call('POST', `/v1/subjects/${subject}/reset`, { ...ask }))
      }
      await call('POST', '/v1/reset', { subject, ...ask })
    },
    rejected: reference => call('GET', `/v1/subjects/${reference}`),
    async denials(by) {
      const query = new URLSearchParams({ ...by, limit: '10' })
      return (await call<{ denials: ShownDenial[] }>('GET', `/v1/denials?${query}`)).denials
    },
    stats: () => call('GET', '/v1/stats'),
    close: async () => {},
  }
}

function unanswered(error: unknown, expected: string): Error {
  const { name, message, cause } = error as Error & { cause?: Error & { code?: string } }
  const code = cause?.code ?? ''
  // The answer could not be read as HTTP; not every version of undici gives a code.
  if (code.startsWith('HPE_') || cause?.name === 'HTTPParserError')
    return new NotHeadgateError(`--server: ${expected}; what answers is not HTTP`)
  const reason = name === 'TimeoutError' ? `no answer within ${ANSWER_WITHIN_MS} ms` : REASONS.get(code)
  return new UnavailableError(`--server: ${expected}; got ${reason ?? (code || cause?.message || message)}`)
}

function failed(status: number, detail: string, wrong: Partial<Mistake>): Error {
  if (status === 503) return new UnavailableError(detail)
  return status < 500 ? new RejectedError(detail, wrong) : new Error(detail)
}
