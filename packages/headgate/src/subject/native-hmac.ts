/** HMAC-SHA-256 as the runtime has it, ten times as quick as our own on long texts. */

/** The HMAC of bytes, or of a text in the encoding that is named, in hexadecimal. */
export type NativeHmac = (
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

/** Null at the edge, where there is no `node:crypto`. Asked for by name, so that no bundler looks for the module. */
export function findNativeHmac(): NativeHmac | null {
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
