import type { Environment } from 'headgate/config'
import { checkedSecret, secretFromFile } from './read-secret.js'

const VARIABLE = 'HEADGATE_TOKEN'

/** The token a command calls a server with: from the file an option names, else from the environment. Null: none. */
export async function callersToken(
  file: string | undefined,
  environment: Environment,
): Promise<string | null> {
  if (file !== undefined) return secretFromFile('--token-file', file)
  const value = environment[VARIABLE]
  return value ? checkedSecret(VARIABLE, value) : null
}
