import { isHeadgateError } from 'headgate'

/**
 * What the library says against a value: `expected …; got …`, or null if it takes it.
 * The library is the only judge of numbers, durations and names, so that the file and the code accept the same.
 */
export function objectionTo(make: () => unknown): string | null {
  try {
    make()
    return null
  } catch (error) {
    if (!isHeadgateError(error)) throw error
    const text = error.message.slice(error.message.indexOf(': ') + 2)
    return text.replace(/got undefined$/, 'got nothing')
  }
}
