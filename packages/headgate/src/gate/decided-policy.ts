import type { DecidedPolicy } from '../policy/policies.js'
import type { Resolution } from '../policy/resolve.js'

/** Describes the rules that led to a decision. */
export function decidedPolicy({
  levels,
  tier,
  unasked,
  headers,
  refundIf,
  question,
}: Resolution): DecidedPolicy {
  const spoke = levels.find(({ part }) => part === 'decides') ?? levels[0]
  const onlyShadow =
    unasked === null && question.shadow.length > 0 && levels.every(({ part }) => part !== 'decides')
  return {
    name: spoke?.level.configured.policy.name ?? '',
    limits: [],
    tier,
    rule: spoke?.level.rule ?? null,
    unasked: onlyShadow ? 'shadow' : unasked,
    headers,
    refundIf,
  }
}
