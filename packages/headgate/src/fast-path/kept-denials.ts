import { type Limit, NEVER } from '../algorithms/algorithm.js'
import { LeasedAnswer, SingleAnswer, SingleQuestion } from '../engine/single-question.js'
import { keepV8Shape } from './keep-v8-shape.js'

/**
 * The denial of one unit of a limit. It stays true until its wait is over unless the state is touched, so that in a
 * flood the same one is given to thousands of requests: as long as it would be told in the same milliseconds.
 */
export class KeptDenial {
  /** The decision that `toldBy` made of it, to be given again. */
  told: unknown = null
  toldBy: object | null = null
  private readonly untilUs: number

  /** Of an answer at `nowUs`, to be given at most until `mostUs`. */
  constructor(
    readonly answer: SingleAnswer,
    readonly limit: Limit,
    readonly nowUs: number,
    mostUs = NEVER,
  ) {
    this.untilUs = Math.min(mostUs, nowUs + sameForUs(answer))
  }

  /** Whether this is what `limit` would answer at `nowUs`, in whole milliseconds, if its state has not been touched. */
  answers(limit: Limit, nowUs: number): boolean {
    return limit === this.limit && nowUs < this.untilUs && nowUs >= this.nowUs
  }
}

/** How long an answer, counting down, is told in the same milliseconds. */
function sameForUs({ retryAfterUs, resetAfterUs }: SingleAnswer): number {
  return retryAfterUs === NEVER ? 0 : Math.min(withinMs(retryAfterUs), withinMs(resetAfterUs))
}

/** How long a duration, counting down, is rounded up to the same millisecond. */
function withinMs(us: number): number {
  return us - (Math.ceil(us / 1000) - 1) * 1000
}

/** Enough that clients who hammer at the same time seldom share a slot. A power of two. */
const SLOTS = 64
const NOBODY = -1

/**
 * The last denials, one for each slot that rows share. Whoever writes to a row other than through the denied
 * question must forget its denial.
 */
export class KeptDenials {
  // Rows are kept apart from denials: most requests are for a row without one, and comparing one number shows that.
  private readonly rows = new Int32Array(SLOTS).fill(NOBODY)
  private readonly denials: (KeptDenial | null)[] = new Array(SLOTS).fill(null)

  find(row: number, limit: Limit, nowUs: number): KeptDenial | null {
    const slot = row % SLOTS
    return this.rows[slot] === row ? this.stillTrue(slot, limit, nowUs) : null
  }

  keep(row: number, denial: KeptDenial): void {
    this.rows[row % SLOTS] = row
    this.denials[row % SLOTS] = denial
  }

  forget(row: number): void {
    const slot = row % SLOTS
    if (this.rows[slot] === row) this.clear(slot)
  }

  /** An expired one is forgotten: the next request may be admitted, and the clock may step back after that. */
  private stillTrue(slot: number, limit: Limit, nowUs: number): KeptDenial | null {
    const denial = this.denials[slot] as KeptDenial
    if (denial.answers(limit, nowUs)) return denial
    this.clear(slot)
    return null
  }

  private clear(slot: number): void {
    this.rows[slot] = NOBODY
    this.denials[slot] = null
  }
}

/** Stands where a shape needs some limit. */
const NO_LIMIT = { limit: 0 } as Limit
keepV8Shape(new KeptDenial(new SingleAnswer(0, 0.5, 0.5, null, 0.5), NO_LIMIT, 0.5))
// Kept here, because engine/ holds arithmetic alone.
keepV8Shape(new SingleQuestion('', '', '', NO_LIMIT, 1))
keepV8Shape(new SingleAnswer(0, 0, 0.5, 0.5, 0.5))
keepV8Shape(new SingleAnswer(0, 0.5, 0.5, null, 0.5))
keepV8Shape(new SingleAnswer(0, 0, 0.5, 0.5, undefined))
keepV8Shape(new LeasedAnswer(0, 0, 0.5, 0.5, undefined))
