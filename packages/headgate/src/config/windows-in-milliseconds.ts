import { doubtOfWindow, WINDOW_IN_SECONDS } from '../algorithms/durations.js'
import type { Path, Warn } from './config-error.js'
import { peekMap } from './shape/maps.js'

/** Warns about every window in a file that looks like milliseconds. `value` is the file before it was read. */
export function findWindowsInMilliseconds(value: unknown, warn: Warn): void {
  for (const [name, policy] of peekMap(peekMap(value)?.get('policies')) ?? []) {
    warnOfWindows(policy, ['policies', name], warn)
  }
}

/** A policy is a limit, a list of limits, or a map that contains such lists. */
function warnOfWindows(value: unknown, path: Path, warn: Warn): void {
  if (Array.isArray(value)) {
    for (const [index, limit] of value.entries()) warnOfWindows(limit, [...path, index], warn)
    return
  }
  const fields = peekMap(value)
  if (fields === null) return
  const doubt = doubtOfWindow(fields.get('window'))
  if (doubt !== null) warn([...path, 'window'], WINDOW_IN_SECONDS, doubt)
  for (const key of ['limits', 'candidate']) warnOfWindows(fields.get(key), [...path, key], warn)
}
