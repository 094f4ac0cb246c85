/**
 * The targets of a run. They assume an otherwise idle machine; a run on a busy one misses them and says so.
 */

/** @typedef {{ claim: string, measured: string, isMet: boolean }} Verdict */

const LEAST_SUCCESS = 0.94
const MOST_SUCCESS = 0.96
const MOST_OVERHEAD_MS = 5
const MOST_P99_MS = 50
const LEAST_RATE = 0.99
const MOST_WITHOUT_REDIS = 0.001

/**
 * @param {import('./figures.js').Figures} figures
 * @param {{ faultyRefusals: number, faults: readonly string[] }} refusals
 * @param {{ connections: number, fewestOpen: number }} opened
 * @returns {Verdict[]}
 */
export function verdictsOf(figures, { faultyRefusals, faults }, { connections, fewestOpen }) {
  const { on, overheadP99Ms, answersPerSecond, requestsPerSecond } = figures
  const success = on.allowed / on.requests
  const lost = figures.failures.map(
    ({ status, count }) => `${count} ${status === 0 ? 'without an answer' : `with ${status}`}`,
  )
  return [
    verdict(
      'about 95 % succeed',
      `${(success * 100).toFixed(1)} %`,
      success >= LEAST_SUCCESS && success <= MOST_SUCCESS,
    ),
    verdict('none is lost', lost.length === 0 ? '0' : lost.join(', '), lost.length === 0),
    verdict(
      'every refusal is a proper 429',
      faultyRefusals === 0
        ? `${on.refused} of ${on.refused}`
        : `${faultyRefusals} are not: ${faults.join('; ')}`,
      faultyRefusals === 0 && on.refused > 0,
    ),
    verdict(
      'all but one in a thousand are decided on Redis',
      `${on.withoutQuota} of ${on.requests} were not`,
      on.withoutQuota <= MOST_WITHOUT_REDIS * on.requests,
    ),
    verdict(
      `the limits add less than ${MOST_OVERHEAD_MS} ms to the 99th percentile`,
      `${overheadP99Ms.toFixed(1)} ms`,
      overheadP99Ms < MOST_OVERHEAD_MS,
    ),
    verdict(
      `99 % are answered within ${MOST_P99_MS} ms`,
      `${on.latency.p99Ms.toFixed(1)} ms`,
      on.latency.p99Ms < MOST_P99_MS,
    ),
    verdict(
      'the rate is kept',
      `${answersPerSecond.toFixed(0)} of ${requestsPerSecond.toFixed(0)} a second`,
      answersPerSecond >= LEAST_RATE * requestsPerSecond,
    ),
    verdict(
      'all connections stay open',
      `${fewestOpen} of ${connections}`,
      fewestOpen >= LEAST_RATE * connections,
    ),
  ]
}

/** @param {string} claim @param {string} measured @param {boolean} isMet @returns {Verdict} */
function verdict(claim, measured, isMet) {
  return { claim, measured, isMet }
}
