/**
 * At the edge there is a request or there is nothing: no timer runs between two of them, nothing may be sent before the
 * first, and what is under way when a response is out is cut off unless the runtime was told of it. So what other stores
 * do in the background is done when the next request comes.
 */
import type { World } from '../guard/pipeline.js'
import type { Stage } from '../stage.js'

/** Work for when somebody asks. */
interface Due {
  readonly atMs: number
  readonly work: () => void
}

export interface OnDemand {
  /** The same world, in which what is done in the background waits for a question. */
  readonly world: World
  /** A stage that does what is due before each question. */
  before(stage: Stage): Stage
  /** Calls that were sent and not answered; null when there are none. */
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
