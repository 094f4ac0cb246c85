/**
 * The paths a rule is about: `/users/:id/posts`, with `*` as the last segment for any rest, also none.
 * Compared with the readings of a path, segment by segment; there are no regular expressions to make slow.
 */

/** A pattern ready to be compared: segments, `null` for a parameter. */
export interface PathPattern {
  readonly segments: readonly (string | null)[]
  /** Whether any rest may follow. */
  readonly open: boolean
  /** Whether it is written with a slash at its end, and so is about the path with and without one. */
  readonly slashAtEnd: boolean
}

/** A pattern from how it is written. What may stand in one is the policy file's to check. */
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
