import type { ConfigIssue, Path } from '../config-error.js'

/** Line and column, both from 1. */
export interface Position {
  readonly line: number
  readonly column: number
}

/** Returns the position of a path, or of its nearest container if it does not exist; null if it is not known. */
export type Locate = (path: Path, at: 'key' | 'value') => Position | null

/** A text parsed to plain values. No key of it can reach an object's prototype. */
export interface LocatedText {
  readonly value: unknown
  /** Mistakes in the text itself; if there are any, `value` means nothing. */
  readonly issues: readonly ConfigIssue[]
  /** Resolves to what finds the positions of problems. */
  locator(): Promise<Locate>
}

/** Deeper than any file needs to be, and far from where a recursive reader breaks. */
export const MAX_DEPTH = 64

/** Returns the position of an offset. */
export function positionIn(text: string, offset: number): Position {
  const before = text.slice(0, offset)
  const start = before.lastIndexOf('\n') + 1
  return { line: before.split('\n').length, column: offset - start + 1 }
}
