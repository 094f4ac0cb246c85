import fc from 'fast-check'
import { expect, it } from 'vitest'
import { percentDecoded } from './percent-decoding.js'

function expected(text: string): string | null {
  try {
    return decodeURIComponent(text)
  } catch {
    return null
  }
}

const hex = (byte: number) => `%${byte.toString(16).padStart(2, '0')}`

it("percent-decoding is decodeURIComponent's: one and two bytes, every one of them", () => {
  for (let first = 0; first < 256; first++) {
    expect(percentDecoded(hex(first))).toBe(expected(hex(first)))
    for (let second = 0; second < 256; second++) {
      const text = hex(first) + hex(second).toUpperCase()
      expect(percentDecoded(text)).toBe(expected(text))
    }
  }
})

it("percent-decoding is decodeURIComponent's: bytes at the edges of UTF-8, and what is no escape", () => {
  const edges = [0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc1, 0xc2, 0xdf, 0xe0, 0xe1, 0xec, 0xed]
  const parts = [
    ...[...edges, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff].map(hex),
    '%',
    '%4',
    '%zz',
    'é',
    'a',
  ]
  fc.assert(
    fc.property(fc.array(fc.constantFrom(...parts), { maxLength: 6 }), list => {
      const text = list.join('')
      expect(percentDecoded(text)).toBe(expected(text))
    }),
    { numRuns: 5_000, seed: 3 },
  )
  for (const text of ['😀', 'é', '�', '￿', '\u0800', '\u07ff', '\u{10ffff}']) {
    expect(percentDecoded(encodeURIComponent(text))).toBe(text)
  }
})
