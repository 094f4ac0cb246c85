/**
 * Lets all contestants run once in every round, each round starting with another, so that a slow phase of the machine
 * affects neighbours alike: compare figures of the same round.
 *
 * @template T
 * @param {ReadonlyMap<string, () => Promise<T>>} contestants
 * @param {number} rounds
 * @returns {Promise<Map<string, T[]>>} By contestant, one result for each round.
 */
export async function interleave(contestants, rounds) {
  const names = [...contestants.keys()]
  /** @type {Map<string, T[]>} */
  const results = new Map(names.map(name => [name, []]))
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < names.length; turn++) {
      const name = /** @type {string} */ (names[(round + turn) % names.length])
      const run = /** @type {() => Promise<T>} */ (contestants.get(name))
      results.get(name)?.push(await run())
    }
  }
  return results
}
