/**
 * Keeps a promise that fails from ending the process, where its failure is nobody's to hear: somebody else has failed
 * before it, or a listener has failed at listening. Anything else is left alone.
 */
export function letFail(begun: unknown): void {
  if (begun instanceof Object && 'then' in begun && typeof begun.then === 'function') {
    begun.then(undefined, () => {})
  }
}
