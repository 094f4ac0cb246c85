import { closeSync, fstatSync, openSync, readSync } from 'node:fs'
import { ConfigFileError } from './config-problem.js'
import { type Config, parseConfig } from './parse-config.js'

const MAX_BYTES = 1024 * 1024

/** Reads a policy file. Throws a `ConfigFileError` if that fails and a `ConfigError` for mistakes in it. */
export function loadConfig(file: string): Config {
  return parseConfig(readText(file), file)
}

function readText(file: string): string {
  try {
    return decode(readAtMost(file, MAX_BYTES + 1), file)
  } catch (error) {
    if (error instanceof ConfigFileError) throw error
    throw new ConfigFileError(file, `expected a file that can be read; got ${reasonOf(error)}`)
  }
}

/** One byte more than allowed is enough to know; a file without end must not fill the memory. */
function readAtMost(file: string, length: number): Uint8Array {
  const descriptor = openSync(file, 'r')
  try {
    if (fstatSync(descriptor).isDirectory()) throw new ConfigFileError(file, 'expected a file; got a folder')
    const buffer = new Uint8Array(length)
    let filled = 0
    for (;;) {
      const read = readSync(descriptor, buffer, filled, length - filled, null)
      filled += read
      if (read === 0 || filled === length) return buffer.subarray(0, filled)
    }
  } finally {
    closeSync(descriptor)
  }
}

function decode(bytes: Uint8Array, file: string): string {
  if (bytes.length > MAX_BYTES)
    throw new ConfigFileError(file, `expected at most ${MAX_BYTES} bytes; got more`)
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes)
  } catch {
    throw new ConfigFileError(file, 'expected text in UTF-8; got other bytes')
  }
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException
  if (code === 'ENOENT') return 'no such file; name one with --config, or begin with --demo'
  if (code === 'EACCES') return 'no permission to read it'
  return code ?? message
}
