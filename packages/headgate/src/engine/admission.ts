/**
 * What admitting a request leaves, in an object that whoever asks keeps and hands in again: the commonest answer is
 * heard at once and never kept, and an object for each would be as much work as the arithmetic.
 */
export class Admission {
  remaining = 0
  resetAfterUs = 0
  nowUs = 0
}
