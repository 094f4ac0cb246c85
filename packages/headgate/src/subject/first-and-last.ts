/**
 * Returns the first and the last of several values, each once. A server that receives several uses one of the
 * two, and we cannot know which. Credentials are therefore tried in both places, so that adding junk beside one
 * does not turn a known caller into an unknown one.
 */
export function firstAndLast(values: readonly string[]): readonly string[] {
  const [first] = values
  const last = values.at(-1)
  if (first === undefined || last === undefined) return []
  return first === last ? [first] : [first, last]
}
