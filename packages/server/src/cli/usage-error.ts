/** A mistyped command, or one that asks for the impossible: the user has to change something. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
