import { randomBytes } from 'node:crypto'
import type { Decision } from 'headgate'

/** Remembers decisions that may be given back, by the reference their callers were told. */
export interface References {
  /** A name for the decision that nobody can guess. */
  remember(decision: Decision): string
  /** Null for one that was never given out here, or so long ago that it is forgotten. */
  find(reference: string): Decision | null
}

/** The newest so many: a caller that never refunds must not fill the memory. */
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
