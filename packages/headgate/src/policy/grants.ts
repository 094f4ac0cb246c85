/** What the rules of a request grant beside its limits. */
import type { PlanLabels } from '../check/plan.js'
import type { Decider } from './checks-of.js'
import type { Level } from './level.js'
import { commonRefunds } from './refund-rule.js'
import { commonStatuses } from './statuses.js'
import { commonWait } from './wait.js'

export function grantsOf(readings: readonly Decider[]): Pick<PlanLabels, 'refundIf' | 'resetIf' | 'wait'> {
  return {
    refundIf: commonOf(readings, level => level.refundIf, commonRefunds),
    resetIf: commonOf(readings, level => level.resetIf, commonStatuses),
    wait: commonOf(readings, level => level.wait, commonWait),
  }
}

/** Returns what the most specific deciding rule grants; with several readings, only what all of them do. */
function commonOf<Grant>(
  readings: readonly Decider[],
  grantOf: (level: Level) => Grant | null,
  commonTo: (one: Grant, other: Grant) => Grant,
): Grant | null {
  let common: Grant | null = null
  for (const { levels, deciding } of readings) {
    const speaks = (deciding[0] ?? levels[0])?.level
    const grant = speaks === undefined ? null : grantOf(speaks)
    if (grant === null) return null
    common = common === null ? grant : commonTo(common, grant)
  }
  return common
}
