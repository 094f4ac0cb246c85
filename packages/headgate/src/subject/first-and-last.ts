/**
 * The first and the last of several values, each once. A server that is sent several takes one of the two, and which one
 * cannot be known here. So a credential that can be verified is looked for in both places: adding rubbish beside it must
 * not turn a known caller into nobody.
 */
export function firstAndLast(values: readonly string[]): readonly string[] {
  const [first] = values
  const last = values.at(-1)
  if (first === undefined || last === undefined) return []
  return first === last ? [first] : [first, last]
}
