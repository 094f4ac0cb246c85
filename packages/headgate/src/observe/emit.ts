import type { Decision } from '../decision/decision.js'
import { unexpected } from '../errors/headgate-error.js'
import { letFail } from '../errors/let-fail.js'
import { type DecisionEvent, decisionEvent } from './event.js'

export type Emit<Event> = (event: Event) => void

/** Tells a listener without letting its own faults reach the request. */
export function safely<Event>(onEvent: Emit<Event>): Emit<Event> {
  return event => {
    try {
      letFail(onEvent(event))
    } catch {
      // A listener that throws has failed at listening; the decision stands.
    }
  }
}

/**
 * Hands events on in the async context this was called in. They happen in that of whichever request sent a call or was
 * answered, which is seldom the one they are about; a listener that looks for a request there would find the wrong one.
 */
export function inThisContext<Event>(onEvent: Emit<Event>): Emit<Event> {
  const events: Event[] = []
  let wake = (): void => {}
  // Code after an await runs in the context of the function, whoever settled the promise.
  async function deliver(): Promise<never> {
    for (;;) {
      for (let event = events.shift(); event !== undefined; event = events.shift()) onEvent(event)
      await new Promise<void>(resolve => {
        wake = resolve
      })
    }
  }
  void deliver()
  return event => {
    events.push(event)
    wake()
  }
}

/** Emits to the listener of an `onEvent` option; null where there is none. */
export function emitterOf<Event>(onEvent: unknown): Emit<Event> | null {
  if (onEvent === undefined) return null
  if (typeof onEvent === 'function') return inThisContext(safely(onEvent as Emit<Event>))
  throw unexpected('ERR_HEADGATE_INVALID_OPTION', 'onEvent', 'a function', onEvent)
}

/** The same function, which tells of its decisions. Without a listener it is the function itself, and costs nothing. */
export function emitting<Args extends unknown[], Result extends Decision | Promise<Decision>>(
  decide: (...args: Args) => Result,
  emit: Emit<DecisionEvent> | null,
): (...args: Args) => Result {
  if (emit === null) return decide
  const emitDecision = (decision: Decision): void => emit(decisionEvent(decision))
  return (...args) => {
    const decided = decide(...args)
    if (decided instanceof Promise) decided.then(emitDecision, () => {})
    else emitDecision(decided)
    return decided
  }
}
