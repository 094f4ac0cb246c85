/** Which of several verdicts a decision is about: the one that the caller has to wait for, or will run out of first. */
import { NEVER } from '../engine/limit.js'
import type { Answer, Verdict } from '../engine/question.js'
import { SingleAnswer } from '../engine/single.js'

/** The alternative that was charged, or else the one that will have room first. */
export function decidingAlternative(answer: Answer): number {
  if (answer.charged >= 0 || answer.verdicts.length === 1) return Math.max(0, answer.charged)
  let best = 0
  let bestWaitUs = NEVER
  for (const [index, verdicts] of answer.verdicts.entries()) {
    const waitUs = verdicts[bindingIndex(verdicts)]?.retryAfterUs ?? 0
    if (waitUs < bestWaitUs) {
      best = index
      bestWaitUs = waitUs
    }
  }
  return best
}

/** The verdict that binds, of the alternative that decided. */
export function bindingOf(answer: Answer): Verdict | undefined {
  if (answer instanceof SingleAnswer) return answer
  const verdicts = answer.verdicts[decidingAlternative(answer)] ?? []
  return verdicts[bindingIndex(verdicts)]
}

/** All checks must fit, so the longest wait binds; among those that fit the least remaining does. */
export function bindingIndex(verdicts: readonly Verdict[]): number {
  let binding = 0
  for (let index = 1; index < verdicts.length; index++) {
    if (bindsMore(verdicts[index] as Verdict, verdicts[binding] as Verdict)) binding = index
  }
  return binding
}

function bindsMore(verdict: Verdict, other: Verdict): boolean {
  if (verdict.retryAfterUs !== other.retryAfterUs) return verdict.retryAfterUs > other.retryAfterUs
  if (verdict.remaining !== other.remaining) return verdict.remaining < other.remaining
  return verdict.resetAfterUs > other.resetAfterUs
}
