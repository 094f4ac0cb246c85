import { type Lists, listsOf } from '../policy/candidates.js'
import { compilePattern, type PathPattern } from '../policy/path-pattern.js'
import type { ReadRule } from './file/rule.js'
import { type ReadList, sound } from './shape/lists.js'

type Match = NonNullable<ReadRule['match']>

/** Returns a rule's name, or else its conditions in one line. */
export function ruleName({ name, match = {} }: Pick<ReadRule, 'name' | 'match'>): string {
  if (name !== undefined) return name
  const methods = match.method === undefined ? [] : [sound(match.method).join('|')]
  const path = match.path === undefined ? [] : [match.path]
  const others = (['subject', 'tier', 'scope'] as const).flatMap(field =>
    match[field] === undefined ? [] : [`${field}:${sound(match[field]).join('|')}`],
  )
  return [...methods, ...path, ...others].join(' ')
}

/** Compiles a rule's conditions for comparison with others on the same level. */
export function compileMatch({ method, path, subject, tier, scope }: Match): {
  readonly level: 'route' | 'caller'
  readonly pattern: PathPattern | null
  readonly lists: Lists
} {
  const all = (list: ReadList<string> | undefined) => (list === undefined ? null : sound(list))
  return {
    level: method === undefined && path === undefined ? 'caller' : 'route',
    pattern: path === undefined ? null : compilePattern(path),
    lists: listsOf({ methods: all(method), subjects: all(subject), tiers: all(tier), scopes: all(scope) }),
  }
}
