/**
 * Parses the path pattern of a rule: `/users/:id/posts`, where a final `*` matches any rest, including an empty
 * one. Patterns are compared segment by segment with the readings of a path. There are no regular expressions that
 * an attacker could slow down.
 */

/** A parsed pattern: its segments, with `null` for a parameter. */
export interface PathPattern {
  readonly segments: readonly (string | null)[]
  /** Whether any rest may follow. */
  readonly open: boolean
  /** Whether it is written with a trailing slash, and so matches the path both with and without one. */
  readonly slashAtEnd: boolean
}

/** Parses a pattern that the policy file has already validated. */
export function compilePattern(text: string): PathPattern {
  const parts = text.split('/').filter(part => part !== '')
  const open = parts.at(-1) === '*'
  if (open) parts.pop()
  return {
    segments: parts.map(part => (part.startsWith(':') ? null : part)),
    open,
    slashAtEnd: !open && text.endsWith('/'),
  }
}
