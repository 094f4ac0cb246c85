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

it('percent-decoding equals decodeURIComponent: one and two bytes, every one of them', () => {
  const bytes = Array.from({ length: 256 }, (_, byte) => hex(byte))
  const pairs = bytes.flatMap(first => bytes.map(second => first + second.toUpperCase()))
  // One expectation: 65,792 of them would take seconds.
  expect([...bytes, ...pairs].filter(text => percentDecoded(text) !== expected(text))).toEqual([])
})

it('percent-decoding equals decodeURIComponent: bytes at the edges of UTF-8, and what is no escape', () => {
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
