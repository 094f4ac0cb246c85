/**
 * An async function that does nothing: what it scores is the most the measuring loop could show for anybody.
 *
 * @returns {import('./contestant.js').Contestant}
 */
export function createHarness() {
  const answer = { allowed: true }
  return {
    ask: async () => answer,
    admits: given => /** @type {{ allowed: boolean }} */ (given).allowed,
    forget: () => {},
  }
}
