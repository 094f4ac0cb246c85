import { createHash, timingSafeEqual } from 'node:crypto'
import type { Caller, Role } from './endpoint.js'

/** A token: whoever has its secret may call the admin port in its role. */
export interface Token {
  readonly name: string
  readonly role: Role
  readonly secret: string
}

/** Finds whose secret it is, or null. Takes as long whichever it is and however much of it is right. */
export type FindCaller = (secret: string) => Caller | null

export function createFindCaller(tokens: readonly Token[]): FindCaller {
  const known = tokens.map(({ name, role, secret }) => ({ caller: { name, role }, digest: digestOf(secret) }))
  return secret => {
    const given = digestOf(secret)
    let found: Caller | null = null
    // All of them, also after a match: the time must not tell which one it was.
    for (const { caller, digest } of known) if (timingSafeEqual(given, digest)) found = caller
    return found
  }
}

/** Of equal length for secrets of any length, which is what comparing in constant time asks for. */
function digestOf(secret: string): Buffer {
  return createHash('sha256').update(secret).digest()
}
