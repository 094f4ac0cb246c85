const MAX_LENGTH = 40
/** More comparisons than this are not worth a hint. */
const MAX_COMPARED = 500

/**
 * Returns the known name with the fewest changed letters, if they are few for its length, else null. Never returns
 * the name itself.
 */
export function nearestName(name: unknown, known: Iterable<string>): string | null {
  if (typeof name !== 'string' || name.length > MAX_LENGTH) return null
  let nearest: string | null = null
  let fewest = Number.POSITIVE_INFINITY
  let compared = 0
  for (const candidate of known) {
    if (candidate === name) return null
    const tolerated = Math.ceil(candidate.length / 3)
    // A difference in length is at least that many changes.
    if (candidate.length > MAX_LENGTH || Math.abs(candidate.length - name.length) > tolerated) continue
    if (++compared > MAX_COMPARED) break
    const changes = changesBetween(name.toLowerCase(), candidate.toLowerCase())
    if (changes <= tolerated && changes < fewest) {
      nearest = candidate
      fewest = changes
    }
  }
  return nearest
}

/**
 * Counts the letters inserted, left out, replaced or swapped with their neighbour. Keeps three rows of the table at
 * a time.
 */
function changesBetween(from: string, to: string): number {
  let before: number[] = []
  let row = Array.from({ length: to.length + 1 }, (_, column) => column)
  for (let line = 1; line <= from.length; line++) {
    const next = [line]
    for (let column = 1; column <= to.length; column++) {
      const replaced = at(row, column - 1) + (from[line - 1] === to[column - 1] ? 0 : 1)
      const isSwapped = from[line - 1] === to[column - 2] && from[line - 2] === to[column - 1]
      const swapped = line > 1 && column > 1 && isSwapped ? at(before, column - 2) + 1 : replaced
      next.push(Math.min(replaced, swapped, at(row, column) + 1, at(next, column - 1) + 1))
    }
    before = row
    row = next
  }
  return at(row, to.length)
}

function at(row: readonly number[], column: number): number {
  return row[column] as number
}
