import type { Limit } from '../engine/limit.js'

/** Whether a limit counts requests, whatever they cost. */
export function countsRequests({ algorithm, counts }: Limit): boolean {
  return counts === 'requests' || algorithm === 'concurrency'
}

/** Returns the units that a request of this cost takes from a limit. */
export function unitsTaken(limit: Limit, cost: number): number {
  return countsRequests(limit) ? 1 : cost
}
