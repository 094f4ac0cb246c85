import type { Environment } from 'headgate/config'
import { checkedSecret, secretFromFile } from './read-secret.js'
import { UsageError } from './usage-error.js'

const VARIABLE = 'HEADGATE_SUBJECT_SECRET'
const FILE_VARIABLE = 'HEADGATE_SUBJECT_SECRET_FILE'

/**
 * The secret that API keys and session ids are stored under: from the file an option names, else from the environment.
 * Never from an option's value, which everybody on the machine can read. Null if there is none.
 */
export async function subjectSecret(
  file: string | undefined,
  environment: Environment,
): Promise<string | null> {
  const value = environment[VARIABLE] || undefined
  const named = environment[FILE_VARIABLE] || undefined
  if (file !== undefined && file !== named) return secretFromFile('--subject-secret-file', file)
  if (value !== undefined && named !== undefined) {
    throw new UsageError(`${VARIABLE}: expected one of ${VARIABLE} and ${FILE_VARIABLE}; got both`)
  }
  if (named !== undefined) return secretFromFile(FILE_VARIABLE, named)
  return value === undefined ? null : checkedSecret(VARIABLE, value)
}
