import { readFile } from 'node:fs/promises'
import { UsageError } from './usage-error.js'

const MIN_LENGTH = 16
const MAX_LENGTH = 1_024

/** A secret from a file. `source` is the option or variable that names the file, for messages. */
export async function secretFromFile(source: string, file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const got = error.code === 'ENOENT' ? 'no such file' : (error.code ?? error.message)
    throw new UsageError(`${source}: expected a file that can be read; got ${got}`)
  })
  // Editors and `echo` end a file with a line break.
  return checkedSecret(source, text.replace(/\r?\n$/, ''))
}

/** The secret, if it is long enough to be one. It is never repeated. */
export function checkedSecret(source: string, secret: string): string {
  if (secret.length >= MIN_LENGTH && secret.length <= MAX_LENGTH) return secret
  throw new UsageError(
    `${source}: expected a secret of ${MIN_LENGTH} to ${MAX_LENGTH} characters; got one of ${secret.length}`,
  )
}
