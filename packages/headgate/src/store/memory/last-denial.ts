import { type Limit, NEVER } from '../../engine/limit.js'
import { SingleAnswer } from '../../engine/single.js'

const NO_LIMIT = { algorithm: 'token-bucket', limit: 0 } as Limit
const NO_ANSWER = new SingleAnswer(0, 0, 0, null, 0)

/**
 * The last denial of a single unit. Nothing is charged to that state before its wait is over, so in a flood from one
 * client the same answer, in whole milliseconds, is given to thousands of requests. Whatever else touches a state has to
 * end it.
 */
export class LastDenial {
  private subject = ''
  private name = ''
  private limit = NO_LIMIT
  private answer = NO_ANSWER
  private untilUs = 0

  /** The same answer, as long as it would be told in the same milliseconds. */
  find(subject: string, name: string, limit: Limit, nowUs: number): SingleAnswer | null {
    const isSame =
      subject === this.subject && nowUs < this.untilUs && name === this.name && limit === this.limit
    return isSame ? this.answer : null
  }

  /** Notes an answer of `nowUs`, to be given at most until `mostUs`. */
  remember(
    subject: string,
    name: string,
    limit: Limit,
    answer: SingleAnswer,
    nowUs: number,
    mostUs = NEVER,
  ): void {
    this.subject = subject
    this.name = name
    this.limit = limit
    this.answer = answer
    this.untilUs = Math.min(mostUs, nowUs + sameForUs(answer))
  }

  forget(): void {
    this.untilUs = 0
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
