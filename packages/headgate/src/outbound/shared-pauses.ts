/**
 * The pauses that hosts have asked for, shared by all processes on one store.
 *
 * A pause is a bucket that refills by a unit a millisecond: it lasts until nothing is missing. To pause for `forMs`, what is
 * missing is filled up to that number in a bucket of this capacity. So two processes that learn the same do not add up, and
 * a longer pause is not shortened.
 */
import { tokenBucket } from '../algorithms/token-bucket.js'
import type { Check } from '../check/check.js'
import { askStore } from '../store/ask-store.js'
import type { Store } from '../store/store.js'

const UNITS_PER_SECOND = 1_000
const MOST_MS = 3_600_000
const LONGEST = bucketOf(MOST_MS)
/** How often it is tried, while others extend the same pause. */
const ROUNDS = 3

export class SharedPauses {
  readonly #store: Store
  readonly #policy: string
  readonly #nameOf: (host: string) => string
  /** Calls of one host that ask at once ask together. */
  readonly #asking = new Map<string, Promise<number>>()

  constructor(store: Store, policy: string, nameOf: (host: string) => string) {
    this.#store = store
    this.#policy = policy
    this.#nameOf = nameOf
  }

  /** Returns how long a host is to be left alone; 0 while the store cannot be asked. Never rejects. */
  leftMs(host: string): Promise<number> {
    let asked = this.#asking.get(host)
    if (asked === undefined) {
      asked = this.#read(host).finally(() => this.#asking.delete(host))
      this.#asking.set(host, asked)
    }
    return asked
  }

  /** Has all processes leave a host alone for at least that long. Never rejects. */
  async extend(host: string, forMs: number): Promise<void> {
    const most = Math.min(MOST_MS, Math.ceil(forMs))
    if (most < 1) return
    try {
      for (let round = 0; round < ROUNDS; round++) {
        const { leftMs } = await this.#ask(host, LONGEST, 1, true)
        if (leftMs >= most) return
        const { isCharged } = await this.#ask(host, bucketOf(most), most - leftMs)
        // Otherwise another pause has come, or was there: a smaller bucket cuts it off before it counts what has passed.
        if (isCharged && leftMs === 0) return
      }
    } catch {
      // Then only this process knows.
    }
  }

  async #read(host: string): Promise<number> {
    try {
      const { leftMs } = await this.#ask(host, LONGEST, 1, true)
      return leftMs
    } catch {
      return 0
    }
  }

  async #ask(host: string, limit: Check['limit'], cost: number, isPeek = false) {
    // No policy name contains a plus, so this never shares state with one.
    const name = `${this.#policy}+pause.${limit.id}`
    const check: Check = { subject: this.#nameOf(host), scope: 'global', name, limit, cost }
    const question = { alternatives: [[check]], shadow: [], onStoreFailure: 'closed' } as const
    const { charged, verdicts } = await askStore(this.#store, question, isPeek)
    const leftMs = Math.ceil((verdicts[0]?.[0]?.resetAfterUs ?? 0) / 1_000)
    return { isCharged: charged >= 0, leftMs }
  }
}

function bucketOf(capacity: number) {
  return tokenBucket({ capacity, refillPerSecond: UNITS_PER_SECOND })
}
