import type { FailureMode } from '../engine/question.js'
import type { Recorder } from '../observe/statistics/recorder.js'
import type { DecidedPolicy } from '../policy/policies.js'
import { decideOn } from './decide-on.js'
import type { Decision, DecisionContext } from './decision.js'

const NO_POLICY: DecidedPolicy = {
  name: '',
  tier: null,
  limits: [],
  rule: null,
  unasked: null,
  headers: null,
  refundIf: null,
}

/**
 * Returns the decision on a request for which no limit could be asked, because something failed before: `closed`
 * refuses it, `open` lets it pass. It advertises no quota.
 */
export function undecided(
  source: Exclude<FailureMode, 'local'>,
  context: DecisionContext,
  recorder: Recorder | null,
): Decision {
  const question = { alternatives: [[]], shadow: [] }
  const answer = { charged: source === 'open' ? 0 : -1, verdicts: [[]], shadow: [], source }
  const decision = decideOn(question, answer, NO_POLICY, 1, context)
  const asked = { question, policy: NO_POLICY, beganUs: 0, labels: null }
  recorder?.decided(asked, { answer, decision, atUs: 0, isImmediate: true }, source)
  return decision
}
