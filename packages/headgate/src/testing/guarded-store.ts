import { systemClock, systemTimers } from '../clock.js'
import { parseDeadlineMs, withDeadline } from '../store/guard/deadline.js'
import { type GuardOptions, guardStore, type StoreHealth } from '../store/guard/guarded-store.js'
import type { Store } from '../store/store.js'

/** The options `redisStore` has for when Redis does not answer. `processes` is 1 when left out. */
export interface GuardedStoreOptions extends GuardOptions {
  /** How long a decision may take before it is given up. Default 30. */
  readonly deadlineMs?: number
  /** Where warnings go. Default: `console.warn`. */
  readonly log?: (line: string) => void
}

/**
 * Puts the guards that `redisStore` has round any store: deadline, breaker and fallback, the same code. They wait in
 * real time, whatever clock the store decides by.
 */
export function guardedStore(
  store: Store,
  options: GuardedStoreOptions = {},
): Store & { health(): StoreHealth } {
  const deadlineMs = parseDeadlineMs(options.deadlineMs)
  const inTime = withDeadline(store, { deadlineMs, clock: systemClock, timers: systemTimers })
  const guarded = guardStore(
    inTime,
    { ...options, processes: options.processes ?? 1 },
    {
      nodeOf: () => '',
      deadlineMs,
      heartbeat: () => Promise.resolve({ live: 1, rewinds: 0 }),
      log: options.log ?? (line => console.warn(`[headgate] ${line}`)),
    },
  )
  return { ...guarded, ...(store.clock && { clock: store.clock }) }
}
