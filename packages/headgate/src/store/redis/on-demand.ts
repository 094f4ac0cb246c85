/**
 * At the edge there is a request or there is nothing: no timer runs between two of them, nothing may be sent before
 * the first, and work in flight after a response is cut off unless the runtime was told. So what other stores do in the
 * background is done when the next request comes.
 */
import type { World } from '../remote/remote-store.js'

/** Work that waits for the next request. */
interface Due {
  readonly atMs: number
  readonly work: () => void
}

export class OnDemand {
  /** The same world, in which background work waits for a request. */
  readonly world: World
  readonly #unanswered = new Set<Promise<unknown>>()
  #waiting: Due[] = []

  constructor(world: World) {
    const inBackground = (ms: number, work: () => void): (() => void) => this.#wait(ms, work)
    const start = (work: () => void): void => void this.#wait(0, work)
    this.world = {
      ...world,
      timers: { ...world.timers, inBackground, start },
      onSent: reply => this.#sent(reply),
    }
  }

  /** Does what has become due; before each request. */
  doWhatIsDue(): void {
    if (this.#waiting.length === 0) return
    const nowMs = this.world.clock.nowUs() / 1_000
    const due = this.#waiting.filter(({ atMs }) => atMs <= nowMs)
    this.#waiting = this.#waiting.filter(({ atMs }) => atMs > nowMs)
    for (const { work } of due) work()
  }

  /** Returns unanswered calls; null if there are none. */
  underWay(): Promise<unknown> | null {
    return this.#unanswered.size === 0 ? null : Promise.allSettled(this.#unanswered)
  }

  #wait(ms: number, work: () => void): () => void {
    const due = { atMs: this.world.clock.nowUs() / 1_000 + ms, work }
    this.#waiting.push(due)
    return () => {
      this.#waiting = this.#waiting.filter(other => other !== due)
    }
  }

  #sent(reply: Promise<unknown>): void {
    this.#unanswered.add(reply)
    const forget = () => void this.#unanswered.delete(reply)
    reply.then(forget, forget)
  }
}
