import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { printable, quoted, shownName } from './shown-text.js'

/** Any text at all, half characters included. */
const anyText = fc.array(fc.nat(0xffff)).map(units => String.fromCharCode(...units))

describe('printable', () => {
  it.each([
    ['\u001b[31mred', '\\u001b[31mred'],
    ['two\r\nlines', 'two\\u000d\\u000alines'],
    ['\u007f\u009b', '\\u007f\\u009b'],
    ['\u202egnp.exe', '\\u202egnp.exe'],
    ['\u2028\u2029', '\\u2028\\u2029'],
    ['half \ud800', 'half \\ud800'],
    ['Zoë 🌊 東京', 'Zoë 🌊 東京'],
  ])('text is made printable: %j', (text, shown) => expect(printable(text)).toBe(shown))

  it('printable text contains no control sequence of a terminal, whatever the input', () => {
    fc.assert(
      fc.property(anyText, text => {
        expect(printable(text)).not.toMatch(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/u)
      }),
    )
  })

  it('printable JSON is the same JSON', () => {
    fc.assert(
      fc.property(anyText, text => {
        expect(JSON.parse(printable(JSON.stringify({ text })))).toEqual({ text })
      }),
    )
  })
})

describe('text that looks like a secret', () => {
  it.each([
    ['apikey:sk_live', 'apikey:*'],
    ['ApiKey:sk_live', 'ApiKey:*'],
    ['access_token:abc', 'access_token:*'],
    ['session:abc', 'session:*'],
    ['user:42', 'user:42'],
    ['10:30', '10:30'],
    ['x'.repeat(70), `${'x'.repeat(60)}…`],
  ])('a name is shown without its secret: %s', (text, shown) => expect(shownName(text)).toBe(shown))

  it('quoted text shows no secret, no password in a URL, and nothing long', () => {
    expect(quoted('token:abc')).toBe('"token:*"')
    expect(quoted('http://user:canary@host')).toBe('a URL with credentials')
    expect(quoted('x'.repeat(41))).toBe('a string of 41 characters')
    expect(quoted('a "b"\u001b')).toBe('"a \\"b\\"\\u001b"')
  })
})
