import type { Decision } from '../decision/decision.js'
import type { SubjectInput } from '../subject/subject.js'
import type { Ask } from './ask.js'
import type { FrontDoor, Way } from './front-door.js'
import type { Limiter } from './limiter.js'
import { reservationOf } from './refunds.js'
import { budgetOf } from './turns.js'

/** The methods of a limiter that ask against a policy or tier by name. */
export type AsksByName = Pick<
  Limiter<string, string>,
  'check' | 'checkNow' | 'peek' | 'acquire' | 'reserve' | 'settle'
>

/** Implements them for a limiter and a gate, once a request is resolved; `settle` is called for reservations. */
export function asksByName(
  door: FrontDoor,
  way: Way<SubjectInput, Ask<string, string>>,
  settle: (decision: Decision, actual: number) => Promise<void>,
): AsksByName {
  const decisions = door.through(way)
  return {
    ...decisions,
    acquire: (subject, { timeoutMs, signal, ...ask }) =>
      door.turns.wait(budgetOf(subject, ask), () => decisions.check(subject, ask as Ask<string, string>), {
        ...(timeoutMs !== undefined && { timeoutMs }),
        ...(signal && { signal }),
      }),
    reserve: async (subject, ask) => reservationOf(await decisions.check(subject, ask), settle),
    settle,
  }
}
