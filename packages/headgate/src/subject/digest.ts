import { findNativeHmac, type NativeHmac } from './native-hmac.js'
import { hmacSha256 } from './sha256.js'

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
/** 128 bits: no two identifiers will ever share one by chance. */
const DIGEST_BYTES = 16
/**
 * Longer texts are hashed as the two bytes of each code unit, which the runtime has at hand: to look through a megabyte
 * for lone surrogates takes longer than to hash it. Under a key of their own, so that no shorter text has the same bytes.
 */
const LONG = 4_096
const LONG_KEY = '\0long'
const LONE_SURROGATE = /\p{Cs}/u

const nativeHmac = findNativeHmac()

/** A keyed one-way name for `text`: 32 hexadecimal digits, the same in every process with the same key. */
export const digest: (key: string, text: string) => string =
  nativeHmac === null ? ownDigest : digestWith(nativeHmac)

function digestWith(hmac: NativeHmac): typeof digest {
  // As a text it would have every lone surrogate replaced by the same character.
  const exact = (text: string): string | Uint8Array => (LONE_SURROGATE.test(text) ? bytes(text) : text)
  const whole = (key: string, text: string): string =>
    text.length > LONG ? hmac(exact(key + LONG_KEY), text, 'utf16le') : hmac(exact(key), exact(text))
  return (key, text) => whole(key, text).slice(0, 2 * DIGEST_BYTES)
}

/** The same digest without the runtime's help. */
export function ownDigest(key: string, text: string): string {
  const isLong = text.length > LONG
  const mac = hmacSha256(bytes(isLong ? key + LONG_KEY : key), isLong ? codeUnits(text) : bytes(text))
  let hex = ''
  for (const byte of mac.subarray(0, DIGEST_BYTES)) hex += HEX[byte]
  return hex
}

/** UTF-16, the lower byte of a code unit first. */
function codeUnits(text: string): Uint8Array {
  const out = new Uint8Array(text.length * 2)
  for (let index = 0; index < text.length; index++) {
    const code = text.charCodeAt(index)
    out[index * 2] = code & 0xff
    out[index * 2 + 1] = code >> 8
  }
  return out
}

/**
 * UTF-8, except that a lone surrogate keeps its own three bytes: TextEncoder would replace every one of them by the
 * same character, and two different identifiers would share a budget.
 */
function bytes(text: string): Uint8Array {
  // A code unit takes three bytes at most; a pair of them takes four.
  const out = new Uint8Array(text.length * 3)
  let length = 0
  for (let index = 0; index < text.length; index++) {
    const code = text.codePointAt(index) as number
    if (code < 0x80) out[length++] = code
    else if (code < 0x800) {
      out[length++] = 0xc0 | (code >> 6)
      out[length++] = 0x80 | (code & 63)
    } else if (code < 0x10000) {
      out[length++] = 0xe0 | (code >> 12)
      out[length++] = 0x80 | ((code >> 6) & 63)
      out[length++] = 0x80 | (code & 63)
    } else {
      out[length++] = 0xf0 | (code >> 18)
      out[length++] = 0x80 | ((code >> 12) & 63)
      out[length++] = 0x80 | ((code >> 6) & 63)
      out[length++] = 0x80 | (code & 63)
      index++
    }
  }
  return out.subarray(0, length)
}
