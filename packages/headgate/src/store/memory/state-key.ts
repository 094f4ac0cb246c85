import { isNameOnly } from '../../subject/subject.js'

/**
 * The key of a state within its table. The subject is the key, so that the common scope costs no new string. Another
 * scope precedes it with its length, after a colon, with which no subject begins: no id can be written to look like a
 * scope. A name that is not a subject also follows a colon, where `OneUnitInMemory` does not find it.
 */
export function keyOf(subject: string, scope: string): string {
  if (scope !== 'global') return `:${scope.length}:${scope}${subject}`
  return isNameOnly(subject) ? `:${subject}` : subject
}
