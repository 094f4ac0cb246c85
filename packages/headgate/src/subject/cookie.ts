import { percentDecoded } from './percent-decoding.js'

/** Returns every value of a cookie in a `Cookie` header as servers read it: unquoted and percent-decoded. */
export function cookieValues(header: string, name: string): readonly string[] {
  const values: string[] = []
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals < 0 || pair.slice(0, equals).trim() !== name) continue
    const value = pair
      .slice(equals + 1)
      .trim()
      .replace(/^"(.*)"$/, '$1')
    // Within a value, spaces and commas must be encoded; a bare one separates several values.
    if (value === '' || /[\s,]/.test(value)) continue
    // Without decoding, one session would have a name for every way of encoding it.
    values.push(percentDecoded(value) ?? value)
  }
  return values
}
