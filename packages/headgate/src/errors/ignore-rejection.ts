/**
 * Keeps a rejected promise from ending the process if nobody needs to hear of it: something else failed before it,
 * or it came from a listener. Ignores values that are not promises.
 */
export function ignoreRejection(begun: unknown): void {
  if (begun instanceof Object && 'then' in begun && typeof begun.then === 'function') {
    begun.then(undefined, () => {})
  }
}
