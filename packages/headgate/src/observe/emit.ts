import { invalidOption } from '../errors/headgate-error.js'
import { ignoreRejection } from '../errors/ignore-rejection.js'

/** Emits an event. */
export type Emit<Event> = (event: Event) => void

/** Wraps a listener so that its faults do not reach the request. */
export function safely<Event>(onEvent: Emit<Event>): Emit<Event> {
  return event => {
    try {
      ignoreRejection(onEvent(event))
    } catch {
      // A failing listener does not change the decision.
    }
  }
}

/**
 * Delivers events in the async context of this call. They occur in the context of whichever request happened to
 * send a call or receive an answer, so a listener that looked up its request there would find the wrong one.
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

/** Returns the emitter for an `onEvent` option; null without one. */
export function emitterOf<Event>(onEvent: unknown): Emit<Event> | null {
  if (onEvent === undefined) return null
  if (typeof onEvent === 'function') return inThisContext(safely(onEvent as Emit<Event>))
  throw invalidOption('onEvent', 'a function', onEvent)
}
