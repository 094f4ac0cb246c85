import type { AnyOptions } from './options.js'

/** The part of a runtime's context that keeps work alive after the response. */
interface Lifetime {
  waitUntil(work: Promise<unknown>): void
}

/**
 * Creates the function that tells a runtime about work still in flight after a decision, such as a call that missed
 * its deadline. Otherwise the runtime would cut it off with the response, along with everybody who shares the call.
 */
export function createOutlive<Native>({ limiter }: AnyOptions<Native>): (given: () => unknown) => void {
  return given => {
    const work = limiter?.underWay?.() ?? null
    if (work === null) return
    const lifetime = given()
    if (isLifetime(lifetime)) lifetime.waitUntil(work)
  }
}

export function isLifetime(given: unknown): given is Lifetime {
  return typeof given === 'object' && given !== null && 'waitUntil' in given
}
