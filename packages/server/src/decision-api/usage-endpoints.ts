/** What callers have used of their quotas, and credits for them. */
import type { IncomingMessage } from 'node:http'
import type { CheckOptions, CreditOptions, RuleLimiter, SubjectInput } from 'headgate'
import { isReference, shownName } from 'headgate/internal'
import { bad, objectOf, rejectUnknown, subjectOf, textOf } from '../admin/body-fields.js'
import { administers, type Caller, type Endpoint, may, RequestError, reads } from '../admin/endpoint.js'
import { readJson } from '../admin/read-body.js'
import { type HttpAnswer, jsonAnswer } from '../http/problem.js'
import type { UsageAsk, UsagePage, UsagePages } from '../redis/usage-pages.js'
import { CSV_HEAD, csvLine } from './usage-csv.js'

const NAMES = ['policy', 'tier', 'scope'] as const
const DEFAULT_ROWS = 500
const MAX_ROWS = 1_000

export interface UsageOptions {
  /** Returns the stored name of the subject behind a reference; null if it is not known. */
  subjectOf(reference: string): string | null
  /** Returns a stored name as readers may see it. */
  show(stored: string): string
  /** What reads the usage of all callers; null if it is kept in this process alone. */
  readonly pages: Pick<UsagePages, 'read'> | null
}

export function usageEndpoints(
  limiter: RuleLimiter,
  { subjectOf: storedOf, show, pages }: UsageOptions,
): readonly Endpoint[] {
  function meant(subject: unknown): SubjectInput | { readonly stored: string } {
    if (typeof subject !== 'string' || !isReference(subject)) return subjectOf(subject, 'subject')
    const stored = storedOf(subject)
    if (stored !== null) return { stored }
    const expected = 'type:id, or the reference of a subject that has been denied lately'
    throw new RequestError(404, { field: 'subject', expected, got: subject })
  }

  async function usage(req: IncomingMessage): Promise<HttpAnswer> {
    const query = queryOf(req, ['subject', ...NAMES])
    const subject = meant(query.subject)
    const quotas = await limiter.usage(subject, askOf(query))
    return jsonAnswer(200, { quotas })
  }

  async function exportPage(req: IncomingMessage, caller: Caller): Promise<HttpAnswer> {
    const query = queryOf(req, ['policy', 'tier', 'period', 'format', 'cursor', 'limit'])
    const format = oneOf('format', query.format ?? 'json', ['json', 'csv'])
    const asked = askedOf(query)
    if (pages === null) {
      const expected = 'Redis (--redis), from which usage is exported'
      throw new RequestError(409, { field: 'store', expected, got: 'the memory of this process' })
    }
    const page = await pages.read(asked)
    const isFirst = asked.cursor === null
    if (!may(caller, 'administer')) {
      const rows = page.rows.map(row => ({ ...row, subject: show(row.subject) }))
      return pageAnswer({ ...page, rows }, format, isFirst)
    }
    const change = `exported the usage of ${Object.values(asked.of)[0]}, with names`
    return { ...pageAnswer(page, format, isFirst), ...(isFirst && { change }) }
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
    { path: '/v1/usage/export', methods: { GET: reads(exportPage) } },
    { path: '/v1/credit', methods: { POST: administers(credit) } },
  ]
}

function queryOf(req: IncomingMessage, known: readonly string[]): Readonly<Record<string, string>> {
  const query = Object.fromEntries(new URL(req.url ?? '/', 'http://localhost').searchParams)
  rejectUnknown(query, known)
  return query
}

function askedOf(query: Readonly<Record<string, string>>): UsageAsk {
  const policy = textOf(query.policy, 'policy')
  const tier = textOf(query.tier, 'tier')
  const { limit = String(DEFAULT_ROWS) } = query
  if (!/^\d{1,9}$/.test(limit) || Number(limit) < 1 || Number(limit) > MAX_ROWS) {
    throw bad('limit', `a whole number from 1 to ${MAX_ROWS}`, limit)
  }
  const more = {
    period: oneOf('period', query.period ?? 'current', ['current', 'previous']),
    cursor: textOf(query.cursor, 'cursor') ?? null,
    limit: Number(limit),
  }
  if (policy !== undefined && tier === undefined) return { of: { policy }, ...more }
  if (policy === undefined && tier !== undefined) return { of: { tier }, ...more }
  throw bad('policy', 'a policy, or a tier in its place', policy === undefined ? undefined : 'both')
}

function oneOf<const T extends string>(field: string, text: string, known: readonly T[]): T {
  const found = known.find(one => one === text)
  if (found !== undefined) return found
  throw bad(field, known.join(' or '), text, known)
}

/** The pages of CSV can be put together as they are: only the first has a head. Their cursor is in a header. */
function pageAnswer(page: UsagePage, format: 'json' | 'csv', isFirst: boolean): HttpAnswer {
  if (format === 'json') return jsonAnswer(200, page)
  const lines = [...(isFirst ? [CSV_HEAD] : []), ...page.rows.map(csvLine)]
  return {
    status: 200,
    headers: [
      ['Content-Type', 'text/csv; charset=utf-8'],
      ['Cache-Control', 'no-store'],
      ...(page.next === null ? [] : [['Headgate-Next-Cursor', page.next] as const]),
      ...(page.leftOut === 0 ? [] : [['Headgate-Left-Out', String(page.leftOut)] as const]),
    ],
    body: lines.map(line => `${line}\n`).join(''),
  }
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
