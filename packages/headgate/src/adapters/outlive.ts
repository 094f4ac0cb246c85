import type { AnyOptions } from './options.js'

/** The part of a runtime's context that lets work go on when the response is out. */
interface Lifetime {
  waitUntil(work: Promise<unknown>): void
}

/**
 * Makes the function that tells a runtime of what is still under way after a decision, such as a call that missed its
 * deadline: it would be cut off with the response, and those who share the call with it.
 */
export function createOutlive<Native>({ gate, limiter }: AnyOptions<Native>): (given: () => unknown) => void {
  const asked = gate ?? limiter
  return given => {
    const work = asked?.underWay?.() ?? null
    if (work === null) return
    const lifetime = given()
    if (isLifetime(lifetime)) lifetime.waitUntil(work)
  }
}

export function isLifetime(given: unknown): given is Lifetime {
  return typeof given === 'object' && given !== null && 'waitUntil' in given
}
