/** What is wrong with a value, part by part, so that nobody has to read it out of a message. */
export interface Mistake {
  /** The option or field the value was given for. */
  readonly field: string
  readonly expected: string
  /** The value that came, in a form that is safe to show: short, on one line, and never a secret. */
  readonly got?: string | undefined
  /** The known name that was probably meant. */
  readonly suggestion?: string | null | undefined
}

/** Puts a mistake into words. The messages of all rejected values are composed here. */
export function mistakeText({ field, ...wrong }: Mistake): string {
  return `${field}: ${mismatchText(wrong)}`
}

/** Formats the same line without the field, for those who name the place themselves. */
export function mismatchText({ expected, got, suggestion }: Omit<Mistake, 'field'>): string {
  const came = got === undefined ? '' : `; got ${got}`
  const hint = suggestion == null ? '' : `; did you mean "${suggestion}"?`
  return `expected ${expected}${came}${hint}`
}
