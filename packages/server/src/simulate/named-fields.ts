/** Requests in named fields, as in JSON lines and CSV. Each field is looked up under the names logs give it. */
import { requestLine } from './combined-log.js'
import { addressSubject, type LoggedRequest, readTime } from './logged-request.js'

/** The names of each field, in order of lookup. */
const FIELD_NAMES = {
  time: ['time', 'timestamp', '@timestamp', 'ts', 'msec', 'time_iso8601', 'time_local', 'date'],
  method: ['method', 'request_method', 'http_method'],
  path: ['path', 'uri', 'request_uri', 'url', 'target'],
  request: ['request'],
  ip: ['ip', 'remote_addr', 'client_ip', 'clientip', 'remoteAddress', 'address'],
  user: ['user', 'remote_user', 'user_id', 'userId'],
  subject: ['subject', 'subjects'],
  tier: ['tier'],
  cost: ['cost'],
} as const

type Field = keyof typeof FIELD_NAMES

/** Looks a field up by one of its names. */
export type Lookup = (name: string) => unknown

/** Returns the request in named fields; null if time or caller is missing or invalid. */
export function requestOfFields(lookup: Lookup): LoggedRequest | null {
  const text = (field: Field): string | undefined => textOf(lookup, field)
  const atMs = readTime(text('time') ?? '')
  const subjects = subjectsOf(lookup)
  if (Number.isNaN(atMs) || subjects.length === 0) return null
  const { method, path } = { ...requestLine(text('request') ?? ''), ...definedOf(text) }
  const cost = Number(text('cost'))
  const tier = text('tier')
  return {
    atMs,
    subjects,
    ...(method !== undefined && { method }),
    ...(path !== undefined && { path }),
    ...(tier !== undefined && { tier }),
    ...(Number.isInteger(cost) && cost >= 0 && text('cost') !== undefined && { cost }),
  }
}

function definedOf(text: (field: Field) => string | undefined): Pick<LoggedRequest, 'method' | 'path'> {
  const method = text('method')
  const path = text('path')
  return { ...(method !== undefined && { method }), ...(path !== undefined && { path: pathOf(path) }) }
}

/** A whole URL is as good as its path. */
function pathOf(text: string): string {
  if (text.startsWith('/') || !URL.canParse(text)) return text
  const { pathname, search } = new URL(text)
  return `${pathname}${search}`
}

function subjectsOf(lookup: Lookup): readonly string[] {
  const named = fieldValue(lookup, 'subject')
  const list = Array.isArray(named) ? named : [named]
  const subjects = list.filter((one): one is string => typeof one === 'string' && one.includes(':'))
  if (subjects.length > 0) return subjects
  const user = textOf(lookup, 'user')
  const address = addressSubject(textOf(lookup, 'ip') ?? '')
  return [
    ...(user === undefined || user === '-' ? [] : [`user:${user}`]),
    ...(address === null ? [] : [address]),
  ]
}

function fieldValue(lookup: Lookup, field: Field): unknown {
  for (const name of FIELD_NAMES[field]) {
    const value = lookup(name)
    if (value !== undefined && value !== null && value !== '') return value
  }
  return undefined
}

function textOf(lookup: Lookup, field: Field): string | undefined {
  const value = fieldValue(lookup, field)
  return typeof value === 'string' || typeof value === 'number' ? `${value}` : undefined
}
