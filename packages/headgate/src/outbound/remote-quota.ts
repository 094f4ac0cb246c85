/**
 * Reads the remaining quota from a response and how long to pause, in any family of headers: those of the IETF and its older
 * drafts, `X-RateLimit-*`, and those of OpenAI and Anthropic, which count requests and tokens apart.
 */

type Headers = Pick<globalThis.Headers, 'get'>

/** A larger number is a Unix time in seconds; a smaller one is a duration. */
const LEAST_UNIX_SECONDS = 1_000_000_000
/** A longer pause than this is ignored. */
const MOST_PAUSE_MS = 3_600_000

/** Returns how long to send nothing after a response: 0 if there is quota left, or nothing is known about it. */
export function pauseAfterMs(headers: Headers, nowMs: number, windowMs: number | null = null): number {
  const quota = remoteQuota(headers, nowMs)
  const usedUpMs = quota?.left === 0 ? bounded(windowMs ?? quota.resetMs) : 0
  return Math.max(askedPauseMs(headers, nowMs), usedUpMs)
}

/**
 * Returns how long the other side asks everybody to wait. That a quota is used up is not among it: its reset is often when all
 * of it is there again, and by then others could have called (`FixedWindows` finds out).
 */
export function askedPauseMs(headers: Headers, nowMs: number): number {
  const asked =
    exactRetryAfterMs(headers.get('retry-after-ms')) ?? retryAfterMs(headers.get('retry-after'), nowMs)
  const pauses = METERS.map(([left, reset]) =>
    /^\s*0+(?:\.0+)?\s*$/.test(headers.get(left) ?? '') ? untilMs(headers.get(reset) ?? '', nowMs) : 0,
  )
  return bounded(Math.max(asked, ...pauses))
}

function bounded(ms: number): number {
  return Math.ceil(Math.min(MOST_PAUSE_MS, Math.max(0, ms)))
}

/** What is left of a meter, and when there will be more. */
const METERS: readonly (readonly [left: string, reset: string])[] = [
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].flatMap(meter => [
    [`x-ratelimit-remaining-${meter}`, `x-ratelimit-reset-${meter}`] as const,
    [`anthropic-ratelimit-${meter}-remaining`, `anthropic-ratelimit-${meter}-reset`] as const,
  ]),
]

/** Milliseconds, as OpenAI and Azure send them beside `Retry-After`. */
function exactRetryAfterMs(value: string | null): number | null {
  return value !== null && NUMBER.test(value) ? Number(value) : null
}

const NUMBER = /^\s*\d{1,12}(?:\.\d{1,9})?\s*$/
/** As Go writes a duration: `6m0s`, `12ms`, `1h2m3.5s`. */
const GO_DURATION = /^\s*(?:\d{1,12}(?:\.\d{1,9})?(?:ns|us|µs|μs|ms|s|m|h))+\s*$/
const GO_PART = /(\d{1,12}(?:\.\d{1,9})?)(ns|us|µs|μs|ms|s|m|h)/g
const UNIT_MS: Readonly<Record<string, number>> = {
  ns: 1e-6,
  us: 1e-3,
  µs: 1e-3,
  μs: 1e-3,
  ms: 1,
  s: 1_000,
  m: 60_000,
  h: 3_600_000,
}
const RFC_3339 = /^\s*\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:[Zz]|[+-]\d\d:\d\d)\s*$/

/** Parses a reset: a duration, seconds, or a time. 0 for anything else. */
function untilMs(reset: string, nowMs: number): number {
  if (NUMBER.test(reset)) return secondsMs(Number(reset), nowMs)
  if (GO_DURATION.test(reset)) {
    let ms = 0
    for (const [, number, unit] of reset.matchAll(GO_PART))
      ms += Number(number) * (UNIT_MS[unit as string] ?? 0)
    return ms
  }
  const at = RFC_3339.test(reset) ? Date.parse(reset.trim()) : Number.NaN
  return Number.isNaN(at) ? 0 : Math.max(0, at - nowMs)
}

/** A large number is a time, a small one a duration. */
function secondsMs(seconds: number, nowMs: number): number {
  return seconds >= LEAST_UNIX_SECONDS ? Math.max(0, seconds * 1_000 - nowMs) : seconds * 1_000
}

/** Parses seconds or a date. */
function retryAfterMs(value: string | null, nowMs: number): number {
  if (value === null) return 0
  if (/^\d{1,9}(\.\d+)?$/.test(value.trim())) return Number(value) * 1_000
  const date = Date.parse(value)
  return Number.isNaN(date) ? 0 : Math.max(0, date - nowMs)
}

/** What is left of a quota, and how long it is until its reset. */
export interface RemoteQuota {
  readonly left: number
  readonly resetMs: number
}

/** Reads `RateLimit` and `X-RateLimit-*`; null if an answer does not say both numbers. */
export function remoteQuota(headers: Headers, nowMs: number): RemoteQuota | null {
  const draft = headers.get('ratelimit')
  const [left, again] =
    draft === null
      ? [numberIn(headers, 'remaining'), numberIn(headers, 'reset')]
      : [parameterOf(draft, ['r', 'remaining']), parameterOf(draft, ['t', 'reset'])]
  return left === null || again === null ? null : { left, resetMs: secondsMs(again, nowMs) }
}

function numberIn(headers: Headers, name: 'remaining' | 'reset'): number | null {
  const text = headers.get(`x-ratelimit-${name}`) ?? headers.get(`ratelimit-${name}`)
  return text !== null && /^\s*\d+(\.\d+)?\s*$/.test(text) ? Number(text) : null
}

/** Parses `"api";r=0;t=30` of the latest drafts, and `limit=10, remaining=0, reset=30` of earlier ones. */
function parameterOf(field: string, names: readonly string[]): number | null {
  for (const part of field.split(/[;,]/)) {
    const [name = '', value = ''] = part.split('=')
    if (names.includes(name.trim()) && /^\s*\d+\s*$/.test(value)) return Number(value)
  }
  return null
}
