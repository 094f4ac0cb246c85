import { isHeadgateError } from '../../errors/headgate-error.js'
import type { Complaint } from '../config-error.js'

/**
 * Returns the library's objection to a value, or null if it accepts it. The library alone validates numbers,
 * durations and names, so that the file and the code accept the same.
 */
export function objectionTo(make: () => unknown): Complaint | null {
  try {
    make()
    return null
  } catch (error) {
    if (!isHeadgateError(error)) throw error
    const { expected = error.message, got = 'something else', suggestion = null } = error
    // What code calls undefined is a line left out in a file.
    return { expected, got: got === 'undefined' || got === 'null' ? 'nothing' : got, suggestion }
  }
}
