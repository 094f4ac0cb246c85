import type { Timers } from './clock.js'

/** Waits for `work`, at most `ms`; after that it fails with `late`, and a later result is dropped. */
export function withinTime<T>(
  work: Promise<T>,
  ms: number,
  after: Timers['after'],
  late: (ms: number) => Error,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const cancel = after(ms, () => reject(late(ms)))
    work.finally(cancel).then(resolve, reject)
  })
}
