import { hmacSha256 } from './sha256.js'

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
/** 128 bits: no two identifiers will ever share one by chance. */
const DIGEST_BYTES = 16

/** A keyed one-way name for `text`: 32 hexadecimal digits, the same in every process with the same key. */
export function digest(key: string, text: string): string {
  let hex = ''
  for (const byte of hmacSha256(bytes(key), bytes(text)).subarray(0, DIGEST_BYTES)) hex += HEX[byte]
  return hex
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
