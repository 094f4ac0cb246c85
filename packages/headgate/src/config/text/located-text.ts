import type { ConfigIssue, Path } from '../config-error.js'

/** A text parsed to plain values. Maps are `Map`s, so that no key can reach an object's prototype. */
export interface LocatedText {
  readonly value: unknown
  /** Mistakes in the text itself; if there are any, `value` means nothing. */
  readonly issues: readonly ConfigIssue[]
  /** Returns the position of a path; if it does not exist, that of its nearest container. */
  locate(path: Path, at: 'key' | 'value'): { line: number; column: number }
}

/** Deeper than any file needs to be, and far from where a recursive reader breaks. */
export const MAX_DEPTH = 64

/** Returns line and column of an offset, both from 1. */
export function positionIn(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset)
  const start = before.lastIndexOf('\n') + 1
  return { line: before.split('\n').length, column: offset - start + 1 }
}
