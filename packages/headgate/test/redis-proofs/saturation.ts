/** The questions that every process of a fleet asks as fast as it can, and the evaluation of their verdicts. */

import type { Limit } from '../../src/algorithms/algorithm.ts'
import { slidingWindowCounter } from '../../src/algorithms/sliding-window-counter.ts'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.ts'
import { tokenBucket } from '../../src/algorithms/token-bucket.ts'
import type { Check } from '../../src/check/check.ts'
import { algorithmOf } from '../algorithms/driver.ts'
import type { Admission } from './bounds.ts'
import type { NumberedCheck, SaturateReport } from './workers.ts'

const HOT_KEYS = 50
export const COSTS = [1, 1, 1, 2, 5]

// About two units a second and key: little enough that even a busy machine asks for several times as much.
const LIMITS: readonly Limit[] = [
  slidingWindowLog({ limit: 10, window: '4s' }),
  slidingWindowCounter({ limit: 10, window: '4s' }),
  slidingWindowCounter({ limit: 10, window: '4s', buckets: 6 }),
  tokenBucket({ capacity: 10, refillPerSecond: 2 }),
]

export const CHECKS: readonly (readonly NumberedCheck[])[] = Array.from({ length: HOT_KEYS }, (_, key) =>
  LIMITS.map((limit, index) => ({
    subject: `user:hot-${key}`,
    scope: 'global',
    name: `proof.${limit.id}`,
    limit,
    cost: 1,
    number: key * LIMITS.length + index,
  })),
)

const ALWAYS = slidingWindowCounter({ limit: 2 ** 32 - 1, window: '4s', name: 'clock' })
export const CLOCKS: readonly Check[] = CHECKS.map(([check]) => ({
  ...(check as Check),
  name: `proof.${ALWAYS.id}`,
  limit: ALWAYS,
}))

export interface LoggedVerdict {
  readonly nowUs: number
  readonly cost: number
  readonly chargedAtUs: number | null
  readonly retryAfterUs: number
  readonly remaining: number
  readonly resetAfterUs: number
}

/**
 * Returns the verdicts on each check in the order the store gave them: a script takes longer than a microsecond.
 */
export function histories(reports: readonly SaturateReport[]): LoggedVerdict[][] {
  const byCheck: LoggedVerdict[][] = Array.from({ length: HOT_KEYS * LIMITS.length }, () => [])
  for (const { verdicts } of reports) {
    for (let at = 0; at < verdicts.length; at += 7) {
      const [number, nowUs, cost, charged, retryAfterUs, remaining, resetAfterUs] = verdicts.subarray(
        at,
        at + 7,
      )
      const chargedAtUs = charged === -1 ? null : charged
      byCheck[number as number]?.push({
        nowUs,
        cost,
        chargedAtUs,
        retryAfterUs,
        remaining,
        resetAfterUs,
      } as LoggedVerdict)
    }
  }
  for (const history of byCheck) history.sort((a, b) => a.nowUs - b.nowUs)
  return byCheck
}

export function admissionsOf(history: readonly LoggedVerdict[]): Admission[] {
  return history.flatMap(({ chargedAtUs, cost }) =>
    chargedAtUs === null ? [] : [{ atUs: chargedAtUs, cost }],
  )
}

/** Returns the verdicts with which the engine, fed the same history, disagrees. */
export function differencesFromEngine(limit: Limit, history: readonly LoggedVerdict[]): unknown[] {
  const algorithm = algorithmOf(limit)
  const state = algorithm.empty()
  return history.flatMap(logged => {
    const { nowUs, cost, chargedAtUs } = logged
    const retryAfterUs = algorithm.waitUs(limit, state, cost, nowUs)
    const expected: LoggedVerdict = {
      nowUs,
      cost,
      chargedAtUs: chargedAtUs === null ? null : algorithm.charge(limit, state, cost, nowUs),
      retryAfterUs,
      remaining: algorithm.remaining(limit, state, nowUs),
      resetAfterUs: algorithm.resetAfterUs(limit, state, nowUs),
    }
    return JSON.stringify(expected) === JSON.stringify(logged) ? [] : [{ expected, logged }]
  })
}
