/** Reads the fields of a descriptor file. Rejects mistakes with their place, what was expected and what came. */
import { HeadgateError } from 'headgate'
import { type Mistake, mistakeAt } from 'headgate/internal'

/** A file that cannot be used, with the place in it. */
export class DescriptorConfigError extends HeadgateError {
  constructor(wrong: Mistake) {
    super('ERR_HEADGATE_INVALID_CONFIG', wrong)
  }
}

export type Fields = Readonly<Record<string, unknown>>

/** `known` null: any fields. */
export function fieldsOf(value: unknown, at: string, known: readonly string[] | null): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw unexpected(at, 'a map', value)
  const unknown = known === null ? undefined : Object.keys(value).find(key => !known.includes(key))
  if (unknown === undefined) return value as Fields
  throw unexpected(at, `one of ${known?.join(', ')}`, unknown, known ?? [])
}

export function textAt(value: unknown, at: string): string {
  if (typeof value === 'string' && value !== '') return value
  throw unexpected(at, 'a non-empty text', value)
}

/** YAML reads a bare 80 as a number, but the text is meant. */
export function scalarAt(value: unknown, at: string): string {
  if (typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean')
    return String(value)
  throw unexpected(at, 'a text', value)
}

export function flagAt(value: unknown, at: string): boolean {
  if (value === undefined || value === null) return false
  if (typeof value === 'boolean') return value
  throw unexpected(at, 'true or false', value)
}

export function unexpected(
  at: string,
  expected: string,
  got: unknown,
  known: readonly string[] = [],
): DescriptorConfigError {
  return new DescriptorConfigError(mistakeAt(at, expected, got, known))
}
