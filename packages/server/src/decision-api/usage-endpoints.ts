/** What callers have used of their quotas, and credits for them. */
import type { IncomingMessage } from 'node:http'
import type { CheckOptions, CreditOptions, RuleLimiter, SubjectInput } from 'headgate'
import { isReference, shownName } from 'headgate/internal'
import { objectOf, rejectUnknown, subjectOf, textOf } from '../admin/body-fields.js'
import { administers, type Endpoint, RequestError, reads } from '../admin/endpoint.js'
import { readJson } from '../admin/read-body.js'
import { type HttpAnswer, jsonAnswer } from '../http/problem.js'

const NAMES = ['policy', 'tier', 'scope'] as const

export function usageEndpoints(
  limiter: RuleLimiter,
  /** Returns the stored name of the subject behind a reference; null if it is not known. */
  storedOf: (reference: string) => string | null,
): readonly Endpoint[] {
  function meant(subject: unknown): SubjectInput | { readonly stored: string } {
    if (typeof subject !== 'string' || !isReference(subject)) return subjectOf(subject, 'subject')
    const stored = storedOf(subject)
    if (stored !== null) return { stored }
    const expected = 'type:id, or the reference of a subject that has been denied lately'
    throw new RequestError(404, { field: 'subject', expected, got: subject })
  }

  async function usage(req: IncomingMessage): Promise<HttpAnswer> {
    const query = Object.fromEntries(new URL(req.url ?? '/', 'http://localhost').searchParams)
    rejectUnknown(query, ['subject', ...NAMES])
    const subject = meant(query.subject)
    const quotas = await limiter.usage(subject, askOf(query))
    return jsonAnswer(200, { quotas })
  }

  async function credit(req: IncomingMessage): Promise<HttpAnswer> {
    const body = objectOf(await readJson(req), 'body')
    rejectUnknown(body, ['subject', 'units', 'id', 'expires', ...NAMES])
    const subject = meant(body.subject)
    const { id, expires, units } = body
    // The limiter validates these and names the bad one; the types cannot.
    const options = { ...askOf(body), id, ...(expires !== undefined && { expires }) }
    const answer = await limiter.credit(
      subject,
      units as number,
      options as CheckOptions<string, string> & CreditOptions,
    )
    const whose =
      typeof subject === 'object' && 'stored' in subject ? subject.stored : limiter.nameOf(subject)
    const change = `credited ${units} units to ${shownName(whose)} (${id})`
    return { ...jsonAnswer(200, answer), ...(answer.added && { change }) }
  }

  return [
    { path: '/v1/usage', methods: { GET: reads(usage) } },
    { path: '/v1/credit', methods: { POST: administers(credit) } },
  ]
}

/** The policy or tier that is named; undefined if none is. */
function askOf(fields: Readonly<Record<string, unknown>>): CheckOptions<string, string> | undefined {
  const named = NAMES.flatMap(name => {
    const text = textOf(fields[name], name)
    return text === undefined ? [] : [[name, text] as const]
  })
  return named.length === 0
    ? undefined
    : (Object.fromEntries(named) as unknown as CheckOptions<string, string>)
}
