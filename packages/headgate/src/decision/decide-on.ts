import type { Answer, Question, Verdict } from '../engine/question.js'
import type { DecidedPolicy, Policy } from '../policy/policies.js'
import type { Source } from '../store/store.js'
import { Decision, type DecisionContext } from './decision.js'
import { asksForPlaces, bindingOf, LazyVerdicts, toMs, toWaitMs } from './verdicts.js'

/** A store that is back is found within a second. */
const CLOSED_RETRY_AFTER_MS = 1_000

/** Turns an answer into a decision. Places it took are held until it is released. */
export function decideOn(
  question: Question,
  answer: Answer,
  policy: Policy | DecidedPolicy,
  cost: number,
  context: DecisionContext,
): Decision {
  const binding = bindingOf(answer)
  const verdicts = new LazyVerdicts(question, answer, cost)
  const decision = new Decision(
    verdicts,
    policy,
    context,
    binding?.remaining ?? Number.POSITIVE_INFINITY,
    retryAfterMsOf(answer, binding, answer.source ?? context.source),
    toMs(binding?.resetAfterUs ?? 0),
    answer.nowUs ?? context.clock.nowUs(),
  )
  if (context.places !== undefined && asksForPlaces(question)) {
    const { places } = verdicts
    if (places.length > 0) verdicts.held = context.places.hold(decision, places)
  }
  return decision
}

function retryAfterMsOf({ charged }: Answer, binding: Verdict | undefined, source: Source): number | null {
  if (source === 'closed') return CLOSED_RETRY_AFTER_MS
  // A denial always has a wait of at least a millisecond, because 0 means allowed.
  return charged >= 0 ? 0 : toWaitMs(Math.max(1, binding?.retryAfterUs ?? 0))
}
