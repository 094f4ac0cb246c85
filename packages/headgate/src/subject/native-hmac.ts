/** The runtime's own HMAC-SHA-256, ten times as fast as ours on long texts. */

/** Computes the HMAC of bytes, or of a text in the given encoding, in hexadecimal. */
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

/**
 * Returns null on edge runtimes, which have no `node:crypto`. The module is looked up by name at run time, so
 * that bundlers do not try to include it.
 */
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
