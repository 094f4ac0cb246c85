import { createHash, timingSafeEqual } from 'node:crypto'
import type { Caller, Role } from './endpoint.js'

/** A token: whoever has its secret may call the admin port in its role. */
export interface Token {
  readonly name: string
  readonly role: Role
  readonly secret: string
}

/** Returns the owner of a secret, or null. Takes the same time whichever it is and however much of it is right. */
export type FindCaller = (secret: string) => Caller | null

export function createFindCaller(tokens: readonly Token[]): FindCaller {
  const known = tokens.map(({ name, role, secret }) => ({ caller: { name, role }, digest: digestOf(secret) }))
  return secret => {
    const given = digestOf(secret)
    let found: Caller | null = null
    // Compares all of them even after a match, because the time must not reveal which one it was.
    for (const { caller, digest } of known) if (timingSafeEqual(given, digest)) found = caller
    return found
  }
}

/** Gives secrets of any length the equal length that a constant-time comparison needs. */
function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}
