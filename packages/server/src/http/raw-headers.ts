import type { IncomingMessage } from 'node:http'

/**
 * Headers as they came. The parsed `headers` join or drop duplicates, and with them the difference between one `Host`
 * and two.
 */

/** Every value of a header, in order. `name` is in lower case. */
export function headerValues({ rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>, name: string): string[] {
  const values: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const key = rawHeaders[index] as string
    if (key.length === name.length && key.toLowerCase() === name) values.push(rawHeaders[index + 1] as string)
  }
  return values
}

/** The members of a comma-separated header, in lower case. */
export function headerTokens(message: Pick<IncomingMessage, 'rawHeaders'>, name: string): string[] {
  return headerValues(message, name)
    .flatMap(value => value.split(','))
    .map(token => token.trim().toLowerCase())
    .filter(token => token !== '')
}

/** Every value of a header that servers may take for `name`, in order. */
export function similarHeaderValues(
  { rawHeaders }: Pick<IncomingMessage, 'rawHeaders'>,
  name: string,
): string[] {
  const values: string[] = []
  for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
    const key = rawHeaders[index] as string
    if (key.length === name.length && plainName(key) === name) values.push(rawHeaders[index + 1] as string)
  }
  return values
}

const PLAIN = /^[a-z0-9-]+$/

/** Servers that hand headers on as variables make everything but letters and digits the same: `X_Forwarded_For`. */
export function plainName(name: string): string {
  const lower = name.toLowerCase()
  return PLAIN.test(lower) ? lower : lower.replace(/[^a-z0-9]/g, '-')
}
