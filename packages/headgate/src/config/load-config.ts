import { isHeadgateError } from '../errors/headgate-error.js'
import type { Config } from '../policy/config.js'
import { MAX_BYTES, parseConfig, type ReadOptions, unreadable } from './parse-config.js'

/**
 * Reads a policy file, YAML or JSON. Throws a `ConfigError` for mistakes in it, and another `HeadgateError` if it
 * cannot be read at all.
 *
 * @example
 * createLimiter({ config: await loadConfig('headgate.yaml') })
 */
export async function loadConfig(file: string, options: ReadOptions = {}): Promise<Config> {
  return parseConfig(await readConfigText(file), file, options)
}

/** Reads the text of a policy file, rejecting one that is too large or not UTF-8. */
export async function readConfigText(file: string): Promise<string> {
  try {
    return decode(await readAtMost(file, MAX_BYTES + 1), file)
  } catch (error) {
    if (isHeadgateError(error)) throw error
    throw unreadable(file, 'a file that can be read', reasonOf(error))
  }
}

/** Reads one byte more than allowed, to notice a file that is too large without filling the memory with it. */
async function readAtMost(file: string, length: number): Promise<Uint8Array> {
  // Imported only here, so that a configuration in code also works where there are no files.
  const { open } = await import('node:fs/promises')
  const handle = await open(file, 'r')
  try {
    if ((await handle.stat()).isDirectory()) throw unreadable(file, 'a file', 'a folder')
    const buffer = new Uint8Array(length)
    let filled = 0
    for (;;) {
      const { bytesRead } = await handle.read(buffer, filled, length - filled, null)
      filled += bytesRead
      if (bytesRead === 0 || filled === length) return buffer.subarray(0, filled)
    }
  } finally {
    await handle.close()
  }
}

function decode(bytes: Uint8Array, file: string): string {
  if (bytes.length > MAX_BYTES) throw unreadable(file, `at most ${MAX_BYTES} bytes`, 'more')
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw unreadable(file, 'text in UTF-8', 'other bytes')
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as { code?: string; message: string }
  if (code === 'ENOENT') return 'no such file'
  if (code === 'EACCES') return 'no permission to read it'
  return code ?? message
}
