/**
 * At the edge there is a request or there is nothing: no timer runs between two of them, nothing may be sent before
 * the first, and work in flight after a response is cut off unless the runtime was told. So background work of
 * other stores is done when the next request comes.
 */
import type { World } from '../guard/pipeline.js'
import type { Stage } from '../stage.js'

/** Work that waits for the next question. */
interface Due {
  readonly atMs: number
  readonly work: () => void
}

export interface OnDemand {
  /** The same world, in which background work waits for a question. */
  readonly world: World
  /** Wraps a stage so that it does what is due before each question. */
  before(stage: Stage): Stage
  /** Returns unanswered calls; null if there are none. */
  underWay(): Promise<unknown> | null
}

export function createOnDemand(world: World): OnDemand {
  const { clock, timers } = world
  const unanswered = new Set<Promise<unknown>>()
  let waiting: Due[] = []

  function inBackground(ms: number, work: () => void): () => void {
    const due = { atMs: clock.nowUs() / 1_000 + ms, work }
    waiting.push(due)
    return () => {
      waiting = waiting.filter(other => other !== due)
    }
  }

  function doWhatIsDue(): void {
    if (waiting.length === 0) return
    const nowMs = clock.nowUs() / 1_000
    const due = waiting.filter(({ atMs }) => atMs <= nowMs)
    waiting = waiting.filter(({ atMs }) => atMs > nowMs)
    for (const { work } of due) work()
  }

  function onSent(reply: Promise<unknown>): void {
    unanswered.add(reply)
    const forget = () => void unanswered.delete(reply)
    reply.then(forget, forget)
  }

  return {
    world: {
      ...world,
      timers: { ...timers, inBackground, start: work => void inBackground(0, work) },
      onSent,
    },
    before({ source, ask, refund, renew, reset, close }) {
      return {
        ...{ source, refund, renew, reset, close },
        ask(action, question, waiter) {
          doWhatIsDue()
          return ask(action, question, waiter)
        },
      }
    },
    underWay: () => (unanswered.size === 0 ? null : Promise.allSettled(unanswered)),
  }
}
