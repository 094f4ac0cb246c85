import { readFile } from 'node:fs/promises'
import { UsageError } from './usage-error.js'

/** The text of a certificate or key file that an option names. */
export async function readPem(option: string, file: string): Promise<string> {
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    const got = error.code === 'ENOENT' ? 'no such file' : (error.code ?? error.message)
    throw new UsageError(`${option}: expected a file that can be read; got ${got}`)
  })
  if (text.includes('-----BEGIN ')) return text
  throw new UsageError(`${option}: expected a file in PEM; got something else`)
}
