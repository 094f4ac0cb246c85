/** Reports callers and rules with a type that no source of `identify` finds: they would never match. */
import { typesOf } from '../subject/source-config.js'
import { foldType } from '../subject/subject-type.js'
import type { ReadFile } from './file/policy-file.js'
import { sound } from './shape/lists.js'
import type { Place } from './shape/shape.js'

export function findUnreachableSubjects(file: ReadFile, top: Place): void {
  // An invalid source may have been meant to find any type.
  if (file.identify === undefined || file.identify.includes(undefined)) return
  const types = new Set(sound(file.identify).flatMap(typesOf).map(foldType))
  const expected = `a type that identify finds (${[...types].join(', ')})`
  const isFound = (type: string): boolean => types.has(foldType(type))
  for (const subject of file.subjects?.keys() ?? []) {
    const type = subject.slice(0, subject.indexOf(':'))
    if (!isFound(type))
      top
        .below('subjects')
        .below(subject)
        .refuse({ expected, got: `one of type ${type}` }, 'key')
  }
  for (const [index, rule] of (file.rules ?? []).entries()) {
    const place = top.below('rules').below(index)
    const named = sound(rule?.match?.subject)
    if (named.length > 0 && !named.some(isFound)) {
      place
        .below('match')
        .below('subject')
        .refuse({ expected, got: named.join(', ') })
    }
    for (const [number, { subject } = {}] of (rule?.also ?? []).entries()) {
      if (subject === undefined || isFound(subject)) continue
      place.below('also').below(number).below('subject').refuse({ expected, got: subject })
    }
  }
}
