/** Simulates every fleet and compares its admissions with the bound and with one exact limiter. */
import { register } from 'node:module'
import { slidingWindowLog, tokenBucket } from 'headgate'
import { countBetween, mostInAny } from './admissions.js'
import { loadParts, simulateFleet } from './fleet-simulation.js'
import { scenariosOf } from './scenarios.js'

register('../../../packages/headgate/test/faults/ts-loader.mjs', import.meta.url)

/**
 * @typedef {object} Simulated
 * @property {string} name
 * @property {number} most The most admitted in any window.
 * @property {number} bound
 * @property {string} why
 * @property {number} admitted Requests admitted in the observed window.
 * @property {number} expected Requests that one exact limiter would have admitted in it.
 * @property {number} requests
 * @property {number} calls Calls that Redis received.
 */

/**
 * @param {{ processes: number, limit: number }} size
 * @param {(step: string) => void} tell
 * @returns {Promise<Simulated[]>}
 */
export async function simulateAll(size, tell) {
  const parts = await loadParts()
  /** @type {Map<object, ReturnType<typeof simulateFleet>>} */
  const runs = new Map()
  const results = []
  for (const { name, fleet, windowUs, bound, why, expected, steady } of scenariosOf(
    { slidingWindowLog, tokenBucket },
    size,
  )) {
    tell(name)
    const run = runs.get(fleet) ?? simulateFleet(parts, fleet)
    runs.set(fleet, run)
    const { admittedUs, requests, calls } = await run
    results.push({
      name,
      bound,
      why,
      expected,
      requests,
      calls,
      most: mostInAny(admittedUs, windowUs),
      admitted: countBetween(admittedUs, steady.fromSeconds * 1e6, steady.toSeconds * 1e6),
    })
  }
  return results
}
