/**
 * Which paths a rule is about: `/users/:id/posts`, with `*` as the last segment for any rest, also none.
 * Compared with canonical paths, segment by segment; there are no regular expressions to make slow.
 */
import { canonicalPath } from './canonical-path.js'

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
  return { segments: parts.map(part => (part.startsWith(':') ? null : canonicalPath(part).slice(1))), open }
}

/** Whether a canonical path, as its segments, is one the pattern is about. */
export function matchesPattern({ segments, open }: PathPattern, path: readonly string[]): boolean {
  if (open ? path.length < segments.length : path.length !== segments.length) return false
  return segments.every((segment, index) => segment === null || segment === path[index])
}

/** The segments of a request's path in their canonical spelling. */
export function pathSegments(target: string): readonly string[] {
  const path = canonicalPath(target)
  return path === '/' ? [] : path.slice(1).split('/')
}
