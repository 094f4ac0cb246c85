/** A command that was typed wrongly, or asks for what cannot be: the user has to change something. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}
