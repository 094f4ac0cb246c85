import { type Limit, NEVER } from '../engine/limit.js'
import { keepV8Shape } from './keep-v8-shape.js'
import { NO_LIMIT, SingleAnswer } from './single-question.js'

/**
 * The denial of one unit of a limit. It stays true until its wait is over unless the state is touched, so in a
 * flood the same one is given to thousands of requests, for as long as it reads the same in milliseconds.
 */
export class KeptDenial {
  /** The decision that `toldBy` made of it, to be reused. */
  told: unknown = null
  toldBy: object | null = null
  private readonly untilUs: number

  /** From an answer at `nowUs`, to be reused at most until `mostUs`. */
  constructor(
    readonly answer: SingleAnswer,
    readonly limit: Limit,
    readonly nowUs: number,
    mostUs = NEVER,
  ) {
    this.untilUs = Math.min(mostUs, nowUs + sameForUs(answer))
  }

  /**
   * Whether `limit` would give this answer at `nowUs`, in whole milliseconds, if its state has not been touched.
   */
  answers(limit: Limit, nowUs: number): boolean {
    return limit === this.limit && nowUs < this.untilUs && nowUs >= this.nowUs
  }
}

/** Returns how long an answer, counting down, reads the same in milliseconds. */
function sameForUs({ retryAfterUs, resetAfterUs }: SingleAnswer): number {
  return retryAfterUs === NEVER ? 0 : Math.min(withinMs(retryAfterUs), withinMs(resetAfterUs))
}

/** Returns how long a duration, counting down, is rounded up to the same millisecond. */
function withinMs(us: number): number {
  return us - (Math.ceil(us / 1000) - 1) * 1000
}

keepV8Shape(new KeptDenial(new SingleAnswer(0, 0.5, 0.5, null, 0.5), NO_LIMIT, 0.5))
