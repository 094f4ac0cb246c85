/** Reads the fields of a JSON body. Rejects mistakes with the field's name, what was expected and what came. */
import type { SubjectInput } from 'headgate'
import { MAX_UNITS, mistakeAt, shownName } from 'headgate/internal'
import { RequestError } from './endpoint.js'

/** A JSON object of unknown contents. */
export type Fields = Readonly<Record<string, unknown>>

export function objectOf(value: unknown, field: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields
  throw bad(field, 'a JSON object', value)
}

export function rejectUnknown(value: Fields, known: readonly string[], prefix = ''): void {
  const unknown = Object.keys(value).find(key => !known.includes(key))
  if (unknown === undefined) return
  throw bad(`${prefix}${shownName(unknown)}`, `one of ${known.join(', ')}`, unknown, known)
}

/** Returns undefined if it is left out. */
export function textOf(value: unknown, field: string): string | undefined {
  if (value === undefined || (typeof value === 'string' && value !== '')) return value
  throw bad(field, 'a non-empty string', value)
}

/** Returns a number of units; undefined if it is left out. */
export function unitsOf(value: unknown, field: string, least: number): number | undefined {
  if (value === undefined) return undefined
  if (Number.isInteger(value) && Number(value) >= least && Number(value) <= MAX_UNITS) return Number(value)
  throw bad(field, `a whole number from ${least} to ${MAX_UNITS}`, value)
}

export function booleanOf(value: unknown, field: string): boolean {
  if (value === undefined || typeof value === 'boolean') return value ?? false
  throw bad(field, 'true or false', value)
}

/** Never shows the value, because the id may be a secret. */
export function subjectOf(value: unknown, field: string): SubjectInput {
  const text = subjectText(value)
  const colon = text.indexOf(':')
  if (colon > 0 && colon < text.length - 1) return text as SubjectInput
  const expected = '"type:id" or { "type", "id" }, both non-empty and no ":" in the type'
  throw new RequestError(400, { field, expected, got: kindOf(value) })
}

function kindOf(value: unknown): string {
  if (typeof value === 'string') return `a string of ${value.length} characters`
  if (value === undefined) return 'none'
  if (value === null || Array.isArray(value)) return value === null ? 'null' : 'a list'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

function subjectText(value: unknown): string {
  if (typeof value === 'string') return value
  const { type, id } = (value ?? {}) as { type?: unknown; id?: unknown }
  return typeof type === 'string' && typeof id === 'string' && !type.includes(':') ? `${type}:${id}` : ''
}

export function bad(
  field: string,
  expected: string,
  got: unknown,
  known: Iterable<string> = [],
): RequestError {
  return new RequestError(400, mistakeAt(field, expected, got, known))
}
