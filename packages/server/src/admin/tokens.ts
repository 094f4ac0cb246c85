import { createHash, timingSafeEqual } from 'node:crypto'
import type { WriteLine } from '../log/write-line.js'
import type { Caller, Role } from './endpoint.js'

/** A token: whoever has its secret may call the admin port in its role. */
export interface Token {
  readonly name: string
  readonly role: Role
  readonly secret: string
}

/** Returns the owner of a secret, or null. Takes the same time whichever it is and however much of it is right. */
export type FindCaller = (secret: string) => Promise<Caller | null>

/** Tokens that were read longer ago are read again before they are compared. */
const FRESH_FOR_MS = 5_000

/**
 * Creates the function that finds callers by these tokens; null if there are none. With `reread`, a token whose file has
 * changed counts within five seconds; files that cannot be read leave the last ones in force.
 */
export function createFindCaller(
  tokens: readonly Token[],
  reread: (() => Promise<readonly Token[]>) | undefined,
  log: WriteLine,
): FindCaller | null {
  if (tokens.length === 0) return null
  let known = digested(tokens)
  let readAtMs = performance.now()
  let reading: Promise<void> | null = null

  async function read(): Promise<void> {
    try {
      known = digested((await reread?.()) ?? tokens)
    } catch (error) {
      const { message: cause } = error as Error
      const consequence = 'the last tokens stay in use'
      log(`admin tokens: could not be read again, ${consequence}: ${cause}`, {
        level: 'error',
        cause,
        consequence,
      })
    }
    readAtMs = performance.now()
    reading = null
  }

  return async secret => {
    if (reread !== undefined && performance.now() - readAtMs >= FRESH_FOR_MS) {
      reading ??= read()
      await reading
    }
    const given = digestOf(secret)
    let found: Caller | null = null
    // Compares all of them even after a match, because the time must not reveal which one it was.
    for (const { caller, digest } of known) if (timingSafeEqual(given, digest)) found = caller
    return found
  }
}

function digested(tokens: readonly Token[]) {
  return tokens.map(({ name, role, secret }) => ({ caller: { name, role }, digest: digestOf(secret) }))
}

/** Gives secrets of any length the equal length that a constant-time comparison needs. */
function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}
