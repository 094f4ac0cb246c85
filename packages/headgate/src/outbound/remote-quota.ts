/** Reads the remaining quota from a response, in either family of headers, and how long to pause. */

type Headers = Pick<globalThis.Headers, 'get'>

/** A larger number is a Unix time in seconds; a smaller one is a duration. */
const LEAST_UNIX_SECONDS = 1_000_000_000
/** A longer pause than this is ignored. */
const MOST_PAUSE_MS = 3_600_000

/** Returns how long to send nothing after a response: 0 if there is quota left, or nothing is known about it. */
export function pauseAfterMs(headers: Headers, nowMs: number): number {
  const pauses = [retryAfterMs(headers.get('retry-after'), nowMs), usedUpMs(headers, nowMs)]
  return Math.min(MOST_PAUSE_MS, Math.max(0, ...pauses))
}

/** Parses seconds or a date. */
function retryAfterMs(value: string | null, nowMs: number): number {
  if (value === null) return 0
  if (/^\d{1,9}(\.\d+)?$/.test(value.trim())) return Number(value) * 1_000
  const date = Date.parse(value)
  return Number.isNaN(date) ? 0 : Math.max(0, date - nowMs)
}

/** Returns the time until there is quota again, if none is left. */
function usedUpMs(headers: Headers, nowMs: number): number {
  const draft = headers.get('ratelimit')
  const [left, again] =
    draft === null
      ? [numberIn(headers, 'remaining'), numberIn(headers, 'reset')]
      : [parameterOf(draft, ['r', 'remaining']), parameterOf(draft, ['t', 'reset'])]
  if (left !== 0 || again === null) return 0
  return again >= LEAST_UNIX_SECONDS ? Math.max(0, again * 1_000 - nowMs) : again * 1_000
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
