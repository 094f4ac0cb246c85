import type { Limit } from '../algorithms/algorithm.js'

/** Whether two limits decide alike, whatever their names and advertised quotas. */
export function hasSameNumbers(one: Limit, other: Limit): boolean {
  const { algorithm } = one
  return (
    algorithm === other.algorithm &&
    one.limit === other.limit &&
    algorithm.wire.span(one) === algorithm.wire.span(other) &&
    algorithm.wire.parts(one) === algorithm.wire.parts(other)
  )
}
