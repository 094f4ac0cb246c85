import type { IncomingMessage } from 'node:http'

/**
 * Headers as received. The parsed `headers` join or drop duplicates, and with them the difference between one
 * `Host` and two.
 */
type WithHeaders = Pick<IncomingMessage, 'rawHeaders'>

/** Shared, because most headers that are looked up are missing, and a request has a dozen looked up. */
const NONE: readonly string[] = Object.freeze([])

/** Returns every value of a header, in order. `name` is in lower case. */
export function headerValues(message: WithHeaders, name: string): readonly string[] {
  return valuesOf(message, name, lowerCase)
}

/** Returns the members of a comma-separated header, in lower case. */
export function headerTokens(message: WithHeaders, name: string): readonly string[] {
  const values = headerValues(message, name)
  if (values.length === 0) return NONE
  return values
    .flatMap(value => value.split(','))
    .map(token => token.trim().toLowerCase())
    .filter(token => token !== '')
}

/** Returns every value of a header that servers may take for `name`, in order. */
export function similarHeaderValues(message: WithHeaders, name: string): readonly string[] {
  return valuesOf(message, name, plainName)
}

function valuesOf(
  { rawHeaders }: WithHeaders,
  name: string,
  spelling: (key: string) => string,
): readonly string[] {
  let values: string[] | null = null
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const key = rawHeaders[index] as string
    if (key.length !== name.length || spelling(key) !== name) continue
    values ??= []
    values.push(rawHeaders[index + 1] as string)
  }
  return values ?? NONE
}

function lowerCase(name: string): string {
  return name.toLowerCase()
}

const PLAIN = /^[a-z0-9-]+$/

/** Servers that pass headers on as variables treat everything but letters and digits alike: `X_Forwarded_For`. */
export function plainName(name: string): string {
  const lower = name.toLowerCase()
  return PLAIN.test(lower) ? lower : lower.replace(/[^a-z0-9]/g, '-')
}
