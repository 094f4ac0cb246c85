/**
 * Which paths a rule is about: `/users/:id/posts`, with `*` as the last segment for any rest, also none.
 * Compared with the readings of a path, segment by segment; there are no regular expressions to make slow.
 */
import { canonicalPath } from './path-readings.js'

/** A pattern ready to be compared: segments, `null` for a parameter. */
export interface PathPattern {
  readonly segments: readonly (string | null)[]
  /** Whether any rest may follow. */
  readonly open: boolean
}

/** A pattern from how it is written. What may stand in one is the policy file's to check. */
export function compilePattern(text: string): PathPattern {
  const parts = text.split('/').filter(part => part !== '')
  const open = parts.at(-1) === '*'
  if (open) parts.pop()
  return {
    segments: parts.map(part => (part.startsWith(':') ? null : canonicalPath(`/${part}`).slice(1))),
    open,
  }
}

/** Whether the pattern is about a path, in any of its readings. */
export function matchesPattern(pattern: PathPattern, readings: readonly (readonly string[])[]): boolean {
  return readings.some(path => matchesReading(pattern, path))
}

/** Whether the pattern is about a path in all its readings. */
export function matchesEveryReading(pattern: PathPattern, readings: readonly (readonly string[])[]): boolean {
  return readings.every(path => matchesReading(pattern, path))
}

function matchesReading({ segments, open }: PathPattern, path: readonly string[]): boolean {
  if (open ? path.length < segments.length : path.length !== segments.length) return false
  return segments.every((segment, index) => (segment === null ? path[index] !== '' : segment === path[index]))
}
