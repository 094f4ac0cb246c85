/** Mode `compare`: this process decides, and the store is asked as well, to see whether the two agree. */
import type { Check, Refund } from '../check/check.js'
import type { PendingCheck } from '../check/pending-check.js'
import { Decision } from '../decision/decision.js'
import { decideBy } from '../store/ask-store.js'
import { MemoryStore } from '../store/memory/memory-store.js'
import type { Store } from '../store/store.js'
import { type Clock, systemTimers } from '../time/clock.js'
import { Permits } from './permits.js'
import { type Actual, type RefundOptions, Refunds } from './refunds.js'
import { strikesIn } from './strikes.js'

export interface ComparisonOptions {
  readonly clock: Clock
  /** The store to compare with. */
  readonly store: Store
  /** Called with the store's own decisions, before they are compared. */
  onStoreDecided(check: PendingCheck): void
  onDivergence(): void
  /** Called when a ban of this process has begun. */
  onBan(check: Check, level: number): void
  isClosed(): boolean
  /** Called when permits of this process have been given back. */
  onFreed(permits: readonly Refund[]): void
  /** Whether the store is closed for a settlement. */
  isTooLate(): boolean
  warn(message: string): void
}

export class Comparison {
  readonly #options: ComparisonOptions
  /** Decides as if there were no other process. */
  readonly #local: MemoryStore
  readonly #permits: Permits
  readonly #permitsInStore: Permits
  readonly #here: Refunds
  readonly #inStore: Refunds
  readonly #strikeInStore: (check: PendingCheck) => void
  /** Bans by what this process decides. */
  readonly strike: (check: PendingCheck) => void
  /** The store's decision for each decision of this process; null if it did not charge. */
  readonly #other = new WeakMap<Decision, Promise<Decision | null>>()

  constructor(options: ComparisonOptions) {
    const { clock, store, onFreed, onBan, isClosed } = options
    this.#options = options
    this.#local = new MemoryStore({ clock })
    this.#permits = new Permits(this.#local, { clock, timers: systemTimers, onFreed })
    this.#permitsInStore = new Permits(store, { clock, timers: systemTimers, onFreed: () => {} })
    this.#here = new Refunds(this.#local)
    this.#inStore = new Refunds(store, options.isTooLate)
    this.strike = strikesIn({ store: this.#local, onBan, isClosed })
    // The bans of the store bind nobody, and are not told.
    this.#strikeInStore = strikesIn({ store, onBan() {}, isClosed })
  }

  /** Whether a decision was made here. */
  has(decision: Decision): boolean {
    return this.#other.has(decision)
  }

  decide(check: PendingCheck): void {
    this.#local.charge(check, check.plan, this.#options.clock.nowUs())
    check.settle('memory')
    if (check.isPeek) return
    const { decision } = check
    const other = this.#askStore(check)
    this.#other.set(decision, other)
    if (!decision.isHeld) return
    Decision.hold(decision, {
      release: async () => {
        await (await other)?.release()
      },
      abandon: () => void other.then(decided => decided?.abandon()),
    })
  }

  /** Holds the permits of a decision that was made here. */
  hold(check: PendingCheck, decision: Decision): void {
    this.#permits.hold(check, decision)
  }

  /** In the background, because the request has its decision. Only the store's own decisions are compared, not its fallback's. */
  async #askStore(check: PendingCheck): Promise<Decision | null> {
    const { store, onStoreDecided, onDivergence, warn } = this.#options
    const asked = check.again()
    try {
      await Promise.resolve()
      await decideBy(store, asked).promise()
    } catch (error) {
      warn(`compare: the store could not be asked: ${(error as Error).message}`)
      return null
    }
    onStoreDecided(asked)
    if (check.plan.hasBan) this.#strikeInStore(asked)
    if (asked.source !== store.source) return null
    if (asked.allowed !== check.allowed) onDivergence()
    if (!asked.allowed) return null
    this.#permitsInStore.hold(asked, asked.decision)
    if (!check.decision.isHeld) void asked.decision.release()
    return asked.decision
  }

  /** Refunds both, so that the two stay comparable. */
  async refund(decision: Decision, given?: number | RefundOptions): Promise<number> {
    const returned = await this.#here.refund(decision, given)
    const charged = await this.#other.get(decision)
    if (charged) await this.#inStore.refund(charged, given)
    return returned
  }

  /** Takes back what an attempt charged in both. */
  async takeBack(decision: Decision): Promise<void> {
    await this.#here.takeBack(decision)
    const charged = await this.#other.get(decision)
    if (charged) await this.#inStore.takeBack(charged)
  }

  async settle(decision: Decision, actual: Actual): Promise<void> {
    await this.#here.settle(decision, actual)
    const charged = await this.#other.get(decision)
    if (charged) await this.#inStore.settle(charged, actual)
  }

  async forgive(decision: Decision): Promise<void> {
    await this.#here.forgive(decision)
    const charged = await this.#other.get(decision)
    if (charged) await this.#inStore.forgive(charged)
  }

  reset(checks: readonly Check[]): void {
    this.#local.reset(checks)
  }

  async close(): Promise<void> {
    await Promise.all([this.#permits.close(), this.#permitsInStore.close()])
  }
}
