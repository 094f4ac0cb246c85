import { decideAlone } from '../../engine/decide.js'
import { Admission, algorithmOf } from '../../engine/legacy-algorithm.js'
import type { Answer } from '../../engine/question.js'
import { SingleAnswer, type SingleQuestion } from '../../engine/single-question.js'
import type { OpenStates } from './open-states.js'
import { keyOf } from './state-key.js'
import type { States } from './states.js'

/** Decides questions of one check: no other state is open, so nothing has to be undone. */
export class SingleChecks {
  private readonly admission = new Admission()

  constructor(
    private readonly states: States,
    private readonly openStates: OpenStates,
  ) {}

  decide(question: SingleQuestion, nowUs: number): Answer {
    const { states, admission } = this
    const { subject, scope, name, limit, cost } = question
    const table = states.tableOf(name, limit)
    const key = keyOf(subject, scope)
    const row = table.rowOf(key)
    if (cost > 0) {
      const isTaken =
        row === undefined
          ? states.takeFirst(table, key, limit, cost, nowUs, admission)
          : table.takeAlone(row, limit, cost, nowUs, admission)
      if (isTaken) return new SingleAnswer(admission.remaining, 0, admission.resetAfterUs, nowUs, nowUs)
    }
    if (row !== undefined) return table.decideAlone(row, limit, cost, nowUs)
    // A place is not taken in one pass, so failing to take it does not mean that it does not fit.
    if (limit.algorithm.kind === 'permits') return this.openStates.decide(question, nowUs)
    const state = states.stateOfNewcomer(question, key, nowUs)
    return decideAlone(algorithmOf(limit), limit, state, cost, nowUs)
  }
}
