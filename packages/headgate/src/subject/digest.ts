import { hmacSha256 } from './sha256.js'

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
/** 128 bits are enough that two identifiers never collide by chance. */
const DIGEST_BYTES = 16
/**
 * Texts longer than this are hashed as UTF-16, the form the runtime already holds: scanning a megabyte for lone
 * surrogates takes longer than hashing it. They get a key of their own, so that no shorter text can produce the
 * same bytes.
 */
const LONG = 4_096
const LONG_KEY = '\0long'
const LONE_SURROGATE = /\p{Cs}/u

const nativeHmac = findNativeHmac()

/**
 * Hashes `text` under `key` into 32 hexadecimal digits, the same in every process with the same key. One-way.
 */
export const digest: (key: string, text: string) => string =
  nativeHmac === null ? ownDigest : digestWith(nativeHmac)

function digestWith(hmac: NativeHmac): typeof digest {
  // Encoding as UTF-8 text would replace every lone surrogate by the same character.
  const exact = (text: string): string | Uint8Array => (LONE_SURROGATE.test(text) ? bytes(text) : text)
  const whole = (key: string, text: string): string =>
    text.length > LONG ? hmac(exact(key + LONG_KEY), text, 'utf16le') : hmac(exact(key), exact(text))
  return (key, text) => whole(key, text).slice(0, 2 * DIGEST_BYTES)
}

/** Computes the same digest without native crypto. */
export function ownDigest(key: string, text: string): string {
  const isLong = text.length > LONG
  const mac = hmacSha256(bytes(isLong ? key + LONG_KEY : key), isLong ? codeUnits(text) : bytes(text))
  let hex = ''
  for (const byte of mac.subarray(0, DIGEST_BYTES)) hex += HEX[byte]
  return hex
}

/** Encodes as UTF-16, low byte first. */
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
 * Encodes as UTF-8, except that a lone surrogate keeps its own three bytes. TextEncoder would replace all of
 * them by the same character, and two different identifiers would share a budget.
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

/** The runtime's own HMAC-SHA-256, ten times as fast as ours on long texts. */

/** Computes the HMAC of bytes, or of a text in the given encoding, in hexadecimal. */
type NativeHmac = (
  key: string | Uint8Array,
  message: string | Uint8Array,
  encoding?: 'utf8' | 'utf16le',
) => string

interface Crypto {
  createHmac(
    algorithm: string,
    key: string | Uint8Array,
  ): { update(message: string | Uint8Array, encoding?: string): { digest(encoding: 'hex'): string } }
}

/**
 * Returns null on edge runtimes, which have no `node:crypto`. The module is looked up by name at run time, so
 * that bundlers do not try to include it.
 */
function findNativeHmac(): NativeHmac | null {
  const { process } = globalThis as {
    process?: { getBuiltinModule?: (name: string) => Crypto | undefined }
  }
  try {
    const crypto = process?.getBuiltinModule?.('node:crypto')
    if (typeof crypto?.createHmac !== 'function') return null
    return (key, message, encoding = 'utf8') =>
      crypto.createHmac('sha256', key).update(message, encoding).digest('hex')
  } catch {
    return null
  }
}

const DIGITS = 'abcdefghijklmnopqrstuvwxyz234567'
const LENGTH = 12

/**
 * Returns twelve characters that stand for a subject where its name must not be shown: in a rejection, so that
 * the caller can quote it, and in what operators see. Every process computes the same reference, and nobody can
 * construct a second subject with it. It is not a secret: anyone who guesses a name can check it against a
 * reference.
 */
export function referenceOf(subject: string): string {
  const hex = digest('headgate handle', subject)
  let reference = ''
  // Five bits per character: four from its own hexadecimal digit, one from a digit further on.
  for (let index = 0; index < LENGTH; index++) {
    const four = Number.parseInt(hex[index] as string, 16)
    const one = Number.parseInt(hex[LENGTH + index] as string, 16) & 1
    reference += DIGITS[four * 2 + one]
  }
  return reference
}

const HANDLE = /^[a-z2-7]{12}$/

/** Whether a text can be a handle. It never is one if it contains a colon, as every subject does. */
export function isReference(text: string): boolean {
  return HANDLE.test(text)
}
