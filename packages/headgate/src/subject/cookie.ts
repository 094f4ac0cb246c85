import { percentDecoded } from './percent-decoding.js'

/** Every value of a cookie in a `Cookie` header, as servers read it: without quotes, and percent-decoded. */
export function cookieValues(header: string, name: string): readonly string[] {
  const values: string[] = []
  for (const pair of header.split(';')) {
    const equals = pair.indexOf('=')
    if (equals < 0 || pair.slice(0, equals).trim() !== name) continue
    const value = pair
      .slice(equals + 1)
      .trim()
      .replace(/^"(.*)"$/, '$1')
    // A space or a comma belongs to a value only if it is encoded; bare, it separates several.
    if (value === '' || /[\s,]/.test(value)) continue
    // Otherwise one session would have as many names as there are ways to encode it.
    values.push(percentDecoded(value) ?? value)
  }
  return values
}
