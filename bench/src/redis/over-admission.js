import { Child } from '../measure/child.js'
import { BOUND } from './workloads.js'

/** @typedef {{ contestant: string, asked: number, limit: number, admitted: number }} Admission */

const PROCESSES = 2

/**
 * Counts what two processes with leases get together when both ask for more of one key than its limit.
 *
 * @param {string} url
 * @param {string} contestant
 * @returns {Promise<Admission>}
 */
export async function countAdmissions(url, contestant) {
  const children = Array.from(
    { length: PROCESSES },
    () => new Child('../redis/slice-process.js', [contestant, url, 'bound']),
  )
  try {
    await Promise.all(children.map(child => child.receive()))
    const order = { workload: 'bound', inFlight: 512, seconds: 0 }
    const slices = /** @type {import('./slice-process.js').Slice[]} */ (
      await Promise.all(children.map(child => child.request(order)))
    )
    const asked = slices.reduce((sum, { requests }) => sum + requests, 0)
    const denied = slices.reduce((sum, slice) => sum + slice.denied, 0)
    return { contestant, asked, limit: BOUND.limit, admitted: asked - denied }
  } finally {
    for (const child of children) child.stop()
  }
}
