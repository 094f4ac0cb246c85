import { type Check, stateOf } from '../../engine/question.js'
import type { Clock } from '../../time/clock.js'

/**
 * Keys that took more than this process's share, and until when they are closed for it. None is forgotten early:
 * otherwise a key in debt could get free by driving others into debt. When there are too many, nobody else may take
 * more than the share.
 */
export class Debts {
  readonly #clock: Clock
  readonly #max: number
  readonly #untilUs = new Map<string, number>()
  #sweepAfterUs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock, max: number) {
    this.#clock = clock
    this.#max = max
  }

  get size(): number {
    return this.#untilUs.size
  }

  /** Returns how long a key is still closed. */
  leftUs(check: Check): number {
    if (this.#untilUs.size === 0) return 0
    const key = stateOf(check)
    const untilUs = this.#untilUs.get(key)
    if (untilUs === undefined) return 0
    const leftUs = untilUs - this.#clock.nowUs()
    if (leftUs <= 0) this.#untilUs.delete(key)
    return Math.max(0, leftUs)
  }

  /** Whether one more key may go into debt. */
  hasRoom(): boolean {
    if (this.#untilUs.size >= this.#max) this.#sweep()
    return this.#untilUs.size < this.#max
  }

  add(check: Check, forUs: number): void {
    this.#untilUs.set(stateOf(check), this.#clock.nowUs() + forUs)
  }

  /** Not run for every request that finds no room, because it looks at all of them. */
  #sweep(): void {
    const nowUs = this.#clock.nowUs()
    if (nowUs < this.#sweepAfterUs) return
    this.#sweepAfterUs = nowUs + SWEEP_EVERY_US
    for (const [key, untilUs] of this.#untilUs) if (untilUs <= nowUs) this.#untilUs.delete(key)
  }
}

const SWEEP_EVERY_US = 1_000_000
