import { randomBytes } from 'node:crypto'
import type { Decision } from 'headgate'

/** Remembers refundable decisions by the reference their callers were given. */
export interface References {
  /** Returns an unguessable name for the decision. */
  remember(decision: Decision): string
  /** Returns null for a reference that was never given out here, or is forgotten. */
  find(reference: string): Decision | null
}

/** How many of the newest are kept: a caller that never refunds must not fill the memory. */
const MAX_REMEMBERED = 50_000
const BYTES = 16

export function createReferences(max = MAX_REMEMBERED): References {
  /** The oldest first. */
  const decisions = new Map<string, Decision>()
  return {
    remember(decision) {
      const reference = randomBytes(BYTES).toString('base64url')
      decisions.set(reference, decision)
      if (decisions.size > max) decisions.delete(decisions.keys().next().value as string)
      return reference
    },
    find: reference => decisions.get(reference) ?? null,
  }
}
