/** Secrets and keys that commands are given: in files and in the environment, never as the value of an option. */
import { readFile } from 'node:fs/promises'
import type { Environment } from 'headgate/internal'
import { UsageError } from './usage-error.js'

const MIN_LENGTH = 16
const MAX_LENGTH = 1_024
const TOKEN_VARIABLE = 'HEADGATE_TOKEN'
const SUBJECT_VARIABLE = 'HEADGATE_SUBJECT_SECRET'
const SUBJECT_FILE_VARIABLE = 'HEADGATE_SUBJECT_SECRET_FILE'

/** Reads a secret from a file. `source` is the option or variable that names the file, for messages. */
export async function secretFromFile(source: string, file: string): Promise<string> {
  const text = await textOf(source, file)
  // Editors and `echo` end a file with a line break.
  return checkedSecret(source, text.replace(/\r?\n$/, ''))
}

/** Returns the secret if it is long enough. Never repeats it. */
export function checkedSecret(source: string, secret: string): string {
  if (secret.length >= MIN_LENGTH && secret.length <= MAX_LENGTH) return secret
  throw new UsageError({
    field: source,
    expected: `a secret of ${MIN_LENGTH} to ${MAX_LENGTH} characters`,
    got: `one of ${secret.length}`,
  })
}

/**
 * Returns the token with which a command calls a server: from the file an option names, else from the environment;
 * null if there is none.
 */
export async function callersToken(
  file: string | undefined,
  environment: Environment,
): Promise<string | null> {
  if (file !== undefined) return secretFromFile('--token-file', file)
  const value = environment[TOKEN_VARIABLE]
  return value ? checkedSecret(TOKEN_VARIABLE, value) : null
}

/**
 * Returns the secret that API keys and session ids are hashed with: from the file an option names, else from the
 * environment. Never from an option's value, which everybody on the machine can read. Null if there is none.
 */
export async function subjectSecret(
  file: string | undefined,
  environment: Environment,
): Promise<string | null> {
  const value = environment[SUBJECT_VARIABLE] || undefined
  const named = environment[SUBJECT_FILE_VARIABLE] || undefined
  if (file !== undefined && file !== named) return secretFromFile('--subject-secret-file', file)
  if (value !== undefined && named !== undefined) {
    throw new UsageError({
      field: SUBJECT_VARIABLE,
      expected: `one of ${SUBJECT_VARIABLE} and ${SUBJECT_FILE_VARIABLE}`,
      got: 'both',
    })
  }
  if (named !== undefined) return secretFromFile(SUBJECT_FILE_VARIABLE, named)
  return value === undefined ? null : checkedSecret(SUBJECT_VARIABLE, value)
}

/** Reads a certificate or key file that an option names. */
export async function readPem(option: string, file: string): Promise<string> {
  const text = await textOf(option, file)
  if (text.includes('-----BEGIN ')) return text
  throw new UsageError({ field: option, expected: 'a file in PEM', got: 'something else' })
}

async function textOf(source: string, file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const got = code === 'ENOENT' ? 'no such file' : (code ?? message)
    throw new UsageError({ field: source, expected: 'a file that can be read', got })
  }
}
