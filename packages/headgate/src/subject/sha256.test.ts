import { createHash, createHmac, randomBytes, randomInt } from 'node:crypto'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { digest, ownDigest } from './digest.js'
import { hmacSha256, sha256 } from './sha256.js'

const hex = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex')

describe('SHA-256', () => {
  it.each([
    ['', 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855'],
    ['abc', 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'],
  ])('the SHA-256 of %j is the published one', (text, expected) => {
    expect(hex(sha256(Buffer.from(text)))).toBe(expected)
  })

  it("SHA-256 equals Node's for every length up to 300", () => {
    const messages = Array.from({ length: 301 }, (_, length) => [
      randomBytes(length),
      Buffer.alloc(length, 0xff),
      Buffer.alloc(length),
    ]).flat()
    expect(messages.map(message => hex(sha256(message)))).toEqual(
      messages.map(message => createHash('sha256').update(message).digest('hex')),
    )
  })

  it("SHA-256 equals Node's for a megabyte", () => {
    const message = randomBytes(1_000_001)
    expect(hex(sha256(message))).toBe(createHash('sha256').update(message).digest('hex'))
  })
})

describe('HMAC-SHA-256', () => {
  it("HMAC-SHA-256 equals Node's for random keys and messages", () => {
    const random = () => randomBytes(randomInt(301))
    const pairs = Array.from({ length: 2_000 }, () => [random(), random()] as const)
    expect(pairs.map(([key, message]) => hex(hmacSha256(key, message)))).toEqual(
      pairs.map(([key, message]) => createHmac('sha256', key).update(message).digest('hex')),
    )
  })

  it.each([63, 64, 65, 127, 128])('HMAC-SHA-256 equals Node’s for a key of %i bytes', length => {
    const key = randomBytes(length)
    expect(hex(hmacSha256(key, key))).toBe(createHmac('sha256', key).update(key).digest('hex'))
  })
})

describe('a digest', () => {
  it('a digest is the first 128 bits of the HMAC of the UTF-8 text', () => {
    const halves = 0x800
    const character = fc
      .nat(0x10ffff - halves)
      .map(point => String.fromCodePoint(point < 0xd800 ? point : point + halves))
    const wellFormed = fc.array(character).map(characters => characters.join(''))
    fc.assert(
      fc.property(wellFormed, wellFormed, (key, text) => {
        const expected = createHmac('sha256', key).update(text, 'utf8').digest('hex').slice(0, 32)
        expect(digest(key, text)).toBe(expected)
      }),
      { numRuns: 1_000 },
    )
  })

  it('a digest tells lone surrogates apart, which UTF-8 would all replace by the same character', () => {
    const texts = ['\ud800', '\ud801', '\udfff', '\ufffd', '\udc00\ud800', '\ud800\ud800', '\ud800\udc00']
    expect(new Set(texts.map(text => digest('key', text))).size).toBe(texts.length)
  })

  it('another key gives another digest', () => {
    expect(digest('one', 'text')).not.toBe(digest('other', 'text'))
  })
})

it('the digest is the same with native crypto and without', () => {
  const text = fc.oneof(
    fc.string({ unit: fc.constantFrom('a', 'é', '€', '\ud800', '\udc00', '\ud83d\ude00'), maxLength: 40 }),
    fc
      .constantFrom('x', 'é', '\ud800', '😀')
      .chain(unit => fc.constantFrom(unit.repeat(4_096), unit.repeat(4_097))),
  )
  fc.assert(
    fc.property(text, text, (key, message) => {
      expect(digest(key, message)).toBe(ownDigest(key, message))
    }),
    { numRuns: 500 },
  )
})
