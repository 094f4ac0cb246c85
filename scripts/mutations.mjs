// The changes that are made to a source: one operator, constant or condition at a time. Textual, and enough so: the sources
// are formatted, so that an operator of the code has a blank on both sides and one of a type has not.

const SWAPS = [
  [' < ', ' <= '],
  [' <= ', ' < '],
  [' > ', ' >= '],
  [' >= ', ' > '],
  [' === ', ' !== '],
  [' !== ', ' === '],
  [' + ', ' - '],
  [' - ', ' + '],
  [' * ', ' / '],
  [' / ', ' * '],
  [' && ', ' || '],
  [' || ', ' && '],
  [' += ', ' -= '],
  [' -= ', ' += '],
  ['Math.max(', 'Math.min('],
  ['Math.min(', 'Math.max('],
  ['Math.ceil(', 'Math.floor('],
  ['Math.floor(', 'Math.ceil('],
  ['return true', 'return false'],
  ['return false', 'return true'],
  ['return null', 'return undefined'],
  [' = true', ' = false'],
  [' = false', ' = true'],
  [' 0', ' 1'],
  [' 1', ' 2'],
  ['(!', '('],
]

/** Lines without code: comments, imports, declarations of types. */
const WITHOUT_CODE = /^\s*(?:\/\/|\/?\*|import |export type|export interface|type |readonly |\| )/

/**
 * Every change of a source, each with its line before and after it.
 *
 * @param {string} source
 * @param {string} file
 */
export function mutationsOf(source, file) {
  return source.split('\n').flatMap((before, index) => {
    if (WITHOUT_CODE.test(before)) return []
    return SWAPS.flatMap(([from, to]) =>
      placesOf(before, from).map(at => ({
        file,
        line: index + 1,
        before,
        after: before.slice(0, at) + to + before.slice(at + from.length),
      })),
    )
  })
}

function placesOf(line, text) {
  const code = line.replace(/ \/\/ .*$/, '')
  const places = []
  for (let at = code.indexOf(text); at >= 0; at = code.indexOf(text, at + 1)) {
    // ` 1` is a constant of its own, not the beginning of 1_000.
    if (!/\d$/.test(text) || !/[\d_.]/.test(code[at + text.length] ?? '')) places.push(at)
  }
  return places
}
