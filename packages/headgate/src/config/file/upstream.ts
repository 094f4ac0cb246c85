/** Reads the servers behind the gateway, and which requests go to which of them. */

import { parseDurationUs } from '../../algorithms/durations.js'
import type { UpstreamConfig } from '../../policy/config.js'
import { describeValue } from '../describe-value.js'
import { oneOrMore, sound } from '../shape/lists.js'
import { isMapLike, peekMap, record } from '../shape/maps.js'
import { objectionTo } from '../shape/objection.js'
import { choice, text, wholeNumber } from '../shape/scalars.js'
import type { Shape } from '../shape/shape.js'

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
const timeout: Shape<number> = {
  words: 'a duration up to 1h, such as 10s',
  schema: { anyOf: [{ type: 'string' }, { type: 'number' }] },
  read(value, place) {
    const read = () => parseDurationUs(value, 'timeout', MAX_TIMEOUT_US) / US_PER_MS
    const objection = objectionTo(read)
    return objection === null ? Math.ceil(read()) : place.reject(objection)
  },
}

const MOST_CONCURRENCY = 100_000
const requestCount = wholeNumber(1, MOST_CONCURRENCY)

const concurrencyFields = record({
  floor: { shape: requestCount, text: 'The limit is never below it.', required: true },
  ceiling: { shape: requestCount, text: 'The limit is never above it.', required: true },
})

/** Reads the bounds of the requests in flight to an upstream. */
export const upstreamConcurrency: typeof concurrencyFields = {
  ...concurrencyFields,
  read(value, place) {
    const read = concurrencyFields.read(value, place)
    const { floor, ceiling } = read ?? {}
    if (floor === undefined || ceiling === undefined) return undefined
    if (floor <= ceiling) return read
    return place.below('ceiling').reject({ expected: `at least the floor, ${floor}`, got: `${ceiling}` })
  },
}

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

/** Reads an upstream: a URL, several of them, or the long form. */
export const upstream: Shape<UpstreamConfig> = {
  words: `${url.words}, a list of them, or a map`,
  schema: { anyOf: [url.schema, urls.schema.anyOf, upstreamServers.schema].flat() },
  read(value, place) {
    const long = isMapLike(value) ? upstreamServers.read(value, place) : null
    const list = long === null ? urls.read(value, place) : long?.urls
    if (list === undefined) return undefined
    const found = sound(list)
    const twice = found.find((one, index) => found.indexOf(one) !== index)
    if (twice !== undefined) return place.reject({ expected: 'each server once', got: `"${twice}" again` })
    return { ...defaults, ...(long && withoutUrls(long)), urls: found }
  },
}

const defaults = {
  host: 'replace',
  timeoutMs: DEFAULT_TIMEOUT_MS,
  connectTimeoutMs: DEFAULT_CONNECT_TIMEOUT_MS,
} as const

function withoutUrls(given: NonNullable<ReturnType<typeof upstreamServers.read>>) {
  const { host, timeout: timeoutMs, connectTimeout: connectTimeoutMs, concurrency } = given
  const { floor, ceiling } = concurrency ?? {}
  return {
    ...(host !== undefined && { host }),
    ...(timeoutMs !== undefined && { timeoutMs }),
    ...(connectTimeoutMs !== undefined && { connectTimeoutMs }),
    ...(floor !== undefined && ceiling !== undefined && { concurrency: { floor, ceiling } }),
  }
}

/** Reads a host name, or `*.` and the end of one, in lower case as they are compared. */
const hostPattern = text(
  'a host name in lower case without port, such as api.example.com or *.example.com',
  /^(?:\*\.)?[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?$/,
)
const routePath = text(
  'the beginning of paths, whole segments such as /api/v2',
  /^(?:\/(?!\.{1,2}(?:\/|$))[\w.~!$&'+,=@:-]+)+$/,
)

const matchFields = record({
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
})

/** Reads the hosts and paths of a route. */
export const routeMatch: typeof matchFields = {
  ...matchFields,
  read(value, place) {
    if (peekMap(value)?.size !== 0) return matchFields.read(value, place)
    return place.reject({
      expected: 'a host or a path; what is for every request is `upstream`',
      got: 'neither',
    })
  },
}

export const route = record({
  match: { shape: routeMatch, text: 'The requests to send there.', required: true },
  upstream: { shape: upstream, text: 'Where they go.', required: true },
})

/** A route as read. */
export type ReadRoute = NonNullable<ReturnType<typeof route.read>>

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
