import { compilePattern, type PathPattern } from '../policy/path-pattern.js'
import type { ReadRule } from './file/rule.js'
import { sound } from './shape/lists.js'

type Match = NonNullable<ReadRule['match']>
type ListField = 'subject' | 'tier' | 'scope'
type Words = readonly (string | undefined)[] | undefined

/** A rule's name, or what it matches in one line. */
export function ruleName({ name, match = {} }: Pick<ReadRule, 'name' | 'match'>): string {
  if (name !== undefined) return name
  const methods = match.method === undefined ? [] : [sound(match.method).join('|')]
  const path = match.path === undefined ? [] : [match.path]
  const others = (['subject', 'tier', 'scope'] as const).flatMap(field =>
    match[field] === undefined ? [] : [`${field}:${sound(match[field]).join('|')}`],
  )
  return [...methods, ...path, ...others].join(' ')
}

/** Whether the first match, standing above the second, leaves it nothing: it holds wherever the second does. */
export function covers(first: Match, second: Match): boolean {
  if (isOfRoute(first) !== isOfRoute(second)) return false
  const lists: readonly ListField[] = ['subject', 'tier', 'scope']
  if (!lists.every(field => holdsAll(first[field], second[field]))) return false
  if (!holdsAll(first.method && withHead(sound(first.method)), second.method)) return false
  if (first.path === undefined) return true
  return second.path !== undefined && coversPath(compilePattern(first.path), compilePattern(second.path))
}

/** Rules of the route and of the caller are on two levels, which do not hide each other. */
function isOfRoute({ method, path }: Match): boolean {
  return method !== undefined || path !== undefined
}

/** A rule for GET is one for HEAD too. */
function withHead(methods: readonly string[]): readonly string[] {
  return methods.includes('GET') ? [...methods, 'HEAD'] : methods
}

function holdsAll(first: Words, second: Words): boolean {
  if (first === undefined) return true
  return second !== undefined && sound(second).every(word => first.includes(word))
}

function coversPath(first: PathPattern, second: PathPattern): boolean {
  if (second.segments.length < first.segments.length) return false
  if (!first.open && (second.open || second.segments.length > first.segments.length)) return false
  return first.segments.every((segment, index) => segment === null || segment === second.segments[index])
}
