import type { Mistake } from 'headgate/internal'
import { mistakeText } from 'headgate/internal'

/** A mistyped command, or one that asks for the impossible: the user has to change something. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
  /** What is wrong; undefined if the message has all there is to say. */
  readonly mistake: Mistake | undefined

  constructor(wrong: Mistake | string) {
    super(typeof wrong === 'string' ? wrong : mistakeText(wrong))
    this.mistake = typeof wrong === 'string' ? undefined : wrong
  }
}
