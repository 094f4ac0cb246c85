/** What only the gateway uses: the servers behind it, which requests go to which of them, and CORS. */

import { type Duration, parseDurationUs } from '../../algorithms/durations.js'
import type { CorsConfig, UpstreamConfig } from '../../policy/config.js'
import { describeValue } from '../describe-value.js'
import { listOf, oneOrMore } from '../shape/lists.js'
import { forms, record } from '../shape/maps.js'
import { choice, text, wholeNumber } from '../shape/scalars.js'
import { mapped, parsed, type Shape, scalar } from '../shape/shape.js'

/** One server that the gateway connects to. */
export interface Upstream {
  readonly protocol: 'http' | 'https'
  readonly hostname: string
  readonly port: number
  /** `host:port`, as in the `Host` header. */
  readonly authority: string
  /** `http://host:port`. */
  readonly origin: string
}

const US_PER_MS = 1_000
const DEFAULT_TIMEOUT_MS = 30_000
const DEFAULT_CONNECT_TIMEOUT_MS = 2_000
const MAX_TIMEOUT_US = 3_600_000_000

const url: Shape<string> = {
  words: 'http://host:port or https://host:port without path, query or credentials',
  schema: { type: 'string', pattern: '^https?://[^/?#@\\s]+/?$' },
  read(value, place) {
    if (parseUpstream(value) !== null) return String(value)
    // The part before an @ may be a password.
    const got = typeof value === 'string' && value.includes('@') ? 'one with an @' : describeValue(value)
    return place.reject({ expected: url.words, got })
  },
}
const urls = oneOrMore(url)

/** In milliseconds. */
const timeout = parsed<number, Duration>(
  'a duration up to 1h, such as 10s',
  { anyOf: [{ type: 'string' }, { type: 'number' }] },
  value => Math.ceil(parseDurationUs(value, 'timeout', MAX_TIMEOUT_US) / US_PER_MS),
)

const requestCount = wholeNumber(1, 100_000)

/** Reads the bounds of the requests in flight to an upstream. */
export const upstreamConcurrency = mapped(
  record({
    floor: { shape: requestCount, text: 'The limit is never below it.', required: true },
    ceiling: { shape: requestCount, text: 'The limit is never above it.', required: true },
  }),
  (read, place) => {
    const { floor, ceiling } = read
    if (floor <= ceiling) return read
    return place.below('ceiling').reject({ expected: `at least the floor, ${floor}`, got: `${ceiling}` })
  },
)

/** The long form of an upstream. */
export const upstreamServers = record({
  urls: {
    shape: urls,
    text: 'Equivalent servers. A request goes to the one with the fewest in progress; a failing one is left out for a while.',
    required: true,
  },
  host: {
    shape: choice(['replace', 'keep']),
    text: "The `Host` they receive: their own name, or the client's.",
    leftOut: 'replace',
  },
  timeout: {
    shape: timeout,
    text: 'How long they may take to begin a response; then the client gets 504.',
    leftOut: '30s',
  },
  connectTimeout: {
    shape: timeout,
    text: 'How long connecting may take; then another server is tried, if there is one.',
    leftOut: '2s',
  },
  concurrency: {
    shape: upstreamConcurrency,
    text: 'Bounds the requests in progress to what their response times show they can handle, between `floor` and `ceiling`. Others get 503.',
    leftOut: 'any number',
  },
})

const defaults = {
  host: 'replace',
  timeoutMs: DEFAULT_TIMEOUT_MS,
  connectTimeoutMs: DEFAULT_CONNECT_TIMEOUT_MS,
} as const

/** Reads an upstream: a URL, several of them, or the long form. */
export const upstream = mapped(
  forms(`${url.words}, a list of them, or a map`, { single: urls, list: urls, map: upstreamServers }),
  (read, place): UpstreamConfig | undefined => {
    const { urls, timeout, connectTimeout, ...others } = 'urls' in read ? read : { urls: read }
    const twice = urls.find((one, index) => urls.indexOf(one) !== index)
    if (twice !== undefined) return place.reject({ expected: 'each server once', got: `"${twice}" again` })
    return {
      ...defaults,
      ...others,
      ...(timeout !== undefined && { timeoutMs: timeout }),
      ...(connectTimeout !== undefined && { connectTimeoutMs: connectTimeout }),
      urls,
    }
  },
)

/** Reads a host name, or `*.` and the end of one, in lower case as they are compared. */
const hostPattern = text(
  'a host name in lower case without port, such as api.example.com or *.example.com',
  /^(?:\*\.)?[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/,
)
const routePath = text<`/${string}`>(
  'the beginning of paths, whole segments such as /api/v2',
  /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~!$&'+,=@:-]+)+$/,
)

/** Reads the hosts and paths of a route. */
export const routeMatch = mapped(
  record({
    host: {
      shape: oneOrMore(hostPattern),
      text: 'Names in `Host`, without port. `*.example.com` covers every name below it.',
      leftOut: 'any',
    },
    path: {
      shape: routePath,
      text: 'The beginning of the path: `/api` covers `/api` and everything below it, not `/apis`.',
      leftOut: 'any',
    },
  }),
  (read, place) =>
    read.host !== undefined || read.path !== undefined
      ? read
      : place.reject({
          expected: 'a host or a path; what is for every request is `upstream`',
          got: 'neither',
        }),
)

export const route = record({
  match: { shape: routeMatch, text: 'The requests to send there.', required: true },
  upstream: { shape: upstream, text: 'Where they go.', required: true },
})

const ANY_ORIGIN = '*'

/** An origin as a browser sends it: lower case, without path, and without the default port. */
const origin = scalar<string>(
  'an origin such as https://app.example.com, or *',
  { type: 'string', pattern: '^(\\*|[a-z][a-z0-9+.-]*://[^/?#@*\\s]+)$' },
  value => value === ANY_ORIGIN || isOrigin(value),
)

export const corsFields = record({
  origins: {
    shape: listOf('a list of origins', origin, { atLeast: 1 }),
    text: 'Origins whose pages may read the gateway’s own responses, exactly as browsers send them; `*` is all of them, and no part of one. Their preflights are answered here: every method and header, no charge.',
    required: true,
  },
  exposedHeaders: {
    shape: listOf('a list of headers', text('the name of a header', /^[A-Za-z0-9-]{1,64}$/)),
    text: 'Headers of these responses that the pages may read.',
    leftOut: 'all of them',
  },
  credentials: {
    shape: scalar<boolean>('true or false', { type: 'boolean' }, value => typeof value === 'boolean'),
    text: 'Whether pages may ask with cookies. Not with the origin `*`.',
    leftOut: 'false',
  },
})

/** Reads which pages of other origins may read the gateway's own responses. */
export const cors = mapped(
  corsFields,
  ({ origins, credentials = false, exposedHeaders = null }, place): CorsConfig | undefined => {
    if (!credentials || !origins.includes(ANY_ORIGIN)) return { origins, credentials, exposedHeaders }
    const expected = 'false beside the origin *, or a list of origins'
    return place.below('credentials').reject({ expected, got: 'true' })
  },
)

function isOrigin(value: unknown): value is string {
  // A star stands for nothing in an origin, and no browser sends one.
  if (typeof value !== 'string' || value.includes('*') || !URL.canParse(value)) return false
  const { protocol, host, origin: own } = new URL(value)
  // Schemes that are not of the web (`app://`) have no origin of their own there.
  return own === value || (own === 'null' && host !== '' && `${protocol}//${host}` === value)
}

/** Parses the URL of a server; null if it is not valid. */
export function parseUpstream(value: unknown): Upstream | null {
  const parsed = typeof value === 'string' && URL.canParse(value) ? new URL(value) : null
  if (parsed === null || !['http:', 'https:'].includes(parsed.protocol)) return null
  if (`${parsed.origin}/` !== parsed.href || parsed.hostname === '' || parsed.port === '0') return null
  const protocol = parsed.protocol === 'https:' ? 'https' : 'http'
  return {
    protocol,
    // Brackets belong to the URL, not to the address.
    hostname: parsed.hostname.replace(/^\[(.*)\]$/, '$1'),
    port: parsed.port === '' ? (protocol === 'https' ? 443 : 80) : Number(parsed.port),
    authority: parsed.host,
    origin: parsed.origin,
  }
}

/** Returns the upstream for a URL given without a file, with the default settings. */
export function upstreamOf(one: string): UpstreamConfig {
  return { ...defaults, urls: [one] }
}
