import type { PendingCheck } from '../check/pending-check.js'
import type { Remote } from '../store/remote/remote.js'
import { parseRemoteOptions, type RemoteOptions } from '../store/remote/remote-options.js'
import { RemoteStore } from '../store/remote/remote-store.js'
import type { Store } from '../store/store.js'
import { type Clock, systemClock, systemTimers } from '../time/clock.js'

/** The options of `redisStore` for when Redis does not answer. `processes` defaults to 1. */
export type GuardedStoreOptions = RemoteOptions

/**
 * Puts any store in the place of Redis behind the guards of `redisStore`: the same breaker, deadline, leases and
 * fallback, with one call per check. The guards wait in real time, whatever clock the store uses.
 */
export function guardedStore(store: Store, options: GuardedStoreOptions = {}): GuardedStore {
  return new GuardedStore(store, options)
}

class GuardedStore extends RemoteStore {
  readonly clock?: Clock

  constructor(store: Store, options: GuardedStoreOptions) {
    const settings = parseRemoteOptions({ ...options, processes: options.processes ?? 1 })
    super(remoteOf(store), settings, { clock: systemClock, timers: systemTimers, random: Math.random })
    if (store.clock !== undefined) this.clock = store.clock
  }
}

function remoteOf(store: Store): Remote {
  return {
    source: store.source,
    isSplit: false,
    batchKeyOf: () => 0,
    nodeOf: () => '',
    nameOf: () => 'the store',
    ask: checks => Promise.all(checks.map(check => decideCopy(store, check))),
    read(reply, checks) {
      const decided = reply as readonly PendingCheck[]
      for (const [index, check] of checks.entries()) check.copyFrom(decided[index] as PendingCheck)
      return null
    },
    refund: async refunds => store.refund(refunds),
    renew: async renewals => store.renew?.(renewals) ?? renewals.map(() => false),
    reset: async checks => store.reset(checks),
    heartbeat: async () => ({ live: 1, recent: 1, lostWrites: 0 }),
    close: () => store.close(),
  }
}

/** Decides a copy of a check: one that was given up meanwhile must not change any more. */
export async function decideCopy(store: Store, check: PendingCheck): Promise<PendingCheck> {
  const copy = check.again()
  if (store.clock !== undefined) copy.atUs = store.clock.nowUs()
  const work = store.decide(copy)
  if (work !== undefined) await work
  else if (copy.source === null) {
    await new Promise<void>((resolve, reject) => {
      copy.onSettled({ settled: () => resolve(), failed: reject })
    })
  }
  return copy
}
