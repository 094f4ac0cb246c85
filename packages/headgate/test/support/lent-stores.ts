import type { RedisStore } from '../../src/store/redis/redis-store.ts'
import type { Store } from '../../src/store/store.ts'
import type { ManualClock } from '../../src/testing/manual-clock.ts'
import { changed } from './changed.ts'

/** Less than a test may take. */
const CONNECTS_WITHIN_MS = 20_000

interface LentStore {
  readonly store: RedisStore
  clock: ManualClock
}

/**
 * Stores that are lent to one law of the contract after the other: to a cluster or behind sentinels, connecting takes a hundred
 * times as long as most laws. Each takes its time from the clock of the law that has it.
 */
export function lendStores(open: (nowUs: () => number) => RedisStore) {
  const idle: LentStore[] = []

  async function connect(clock: ManualClock): Promise<LentStore> {
    const lent: LentStore = { clock, store: open(() => lent.clock.nowUs()) }
    if (await lent.store.ready({ timeoutMs: CONNECTS_WITHIN_MS })) return lent
    // The next law tries with another: one that did not get through must not fail them all.
    await lent.store.close()
    throw new Error(`the store was not connected within ${CONNECTS_WITHIN_MS} ms`)
  }

  return {
    /** A connected store, which is given back by closing it. */
    async lend(clock: ManualClock): Promise<Store> {
      const lent = idle.pop() ?? (await connect(clock))
      lent.clock = clock
      return changed(lent.store, { close: async () => void idle.push(lent) })
    },
    /** Closes what was given back. */
    async close(): Promise<void> {
      await Promise.all(idle.splice(0).map(({ store }) => store.close()))
    },
  }
}
