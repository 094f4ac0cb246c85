import type { ConfigIssue, Path } from '../config-error.js'

/** A text as plain values. Maps are `Map`s, so that no key can reach an object's prototype. */
export interface LocatedText {
  readonly value: unknown
  /** Issues with the text itself; `value` means nothing if there is any. */
  readonly issues: readonly ConfigIssue[]
  /** Where a path stands; where it does not exist, what would contain it. */
  locate(path: Path, at: 'key' | 'value'): { line: number; column: number }
}

/** Deeper than any file has a reason to be, and far from where a reader that calls itself breaks. */
export const MAX_DEPTH = 64

/** Line and column of an offset, both from 1. */
export function positionIn(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset)
  const start = before.lastIndexOf('\n') + 1
  return { line: before.split('\n').length, column: offset - start + 1 }
}
