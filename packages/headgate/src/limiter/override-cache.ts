/**
 * The current overrides as stored. One is parsed when a request first meets it: of thousands most belong to absent
 * callers, and parsing all at once would block everybody.
 */

import { ActiveOverride, type ActiveOverrides } from '../policy/active-override.js'
import { type Override, readStoredOverride, targetKey } from '../policy/override.js'
import type { TierLimits } from '../policy/policies.js'
import type { StoredEntry, StoredOverrides } from '../store/control-store.js'
import type { Clock } from '../time/clock.js'
import type { Steps } from '../time/steps.js'

/** How many are checked in the background after every read, to warn of what cannot be understood. */
const CHECKED_AT_ONCE = 200

export class OverrideCache implements ActiveOverrides {
  private entries: ReadonlyMap<string, StoredEntry> = new Map()
  private unchecked: Iterator<[string, StoredEntry]> = this.entries.entries()
  private sizeSeen = 0
  /** The difference between this process's clock and the store's. */
  private offsetUs = 0
  private readonly known = new WeakMap<StoredEntry, ActiveOverride | null>()

  constructor(
    private readonly clock: Clock,
    private readonly tierLimits: () => TierLimits | null,
    private readonly warn: (message: string) => void,
    /** Called with their number when they have changed. */
    private readonly onChange: (stored: number) => void,
  ) {}

  get size(): number {
    return this.entries.size
  }

  /** Returns those that have not ended at this time of the store, as stored. */
  *liveAt(nowMs: number): Generator<readonly [target: string, StoredEntry]> {
    for (const one of this.entries) if (one[1].expiresAtMs > nowMs) yield one
  }

  /** Replaces what was last seen. */
  take({ entries, nowMs }: StoredOverrides): void {
    this.offsetUs = this.clock.nowUs() - nowMs * 1000
    const isOther = entries !== this.entries
    // The embedded store returns the same map every time, so its size is what shows a change there.
    if (entries.size !== this.sizeSeen || (isOther && entries.size > 0)) this.onChange(entries.size)
    this.sizeSeen = entries.size
    if (isOther) {
      this.entries = entries
      this.unchecked = entries.entries()
    }
    for (let checked = 0; checked < CHECKED_AT_ONCE; checked++) {
      const next = this.unchecked.next()
      if (next.done === true) return
      this.read(...next.value)
    }
  }

  find(target: string, nowUs: number): ActiveOverride | null {
    const entry = this.entries.get(target)
    return entry !== undefined && this.isLive(entry, nowUs) ? this.read(target, entry) : null
  }

  leftUs(target: string, nowUs: number): number {
    const entry = this.entries.get(target)
    if (entry === undefined || this.read(target, entry) === null) return 0
    return Math.max(0, entry.expiresAtMs * 1000 + this.offsetUs - nowUs)
  }

  /** Those in force, sorted by expiry. */
  *list(): Steps<readonly Override[]> {
    const nowUs = this.clock.nowUs()
    const live: Override[] = []
    for (const [target, entry] of this.entries) {
      const read = this.isLive(entry, nowUs) ? this.read(target, entry) : null
      if (read !== null) live.push(read.override)
      yield
    }
    return live.sort((one, other) => one.expiresAt - other.expiresAt)
  }

  private isLive({ expiresAtMs }: StoredEntry, nowUs: number): boolean {
    return expiresAtMs * 1000 + this.offsetUs > nowUs
  }

  private read(target: string, entry: StoredEntry): ActiveOverride | null {
    const known = this.known.get(entry)
    if (known !== undefined) return known
    const stored = readStoredOverride(entry.text, this.tierLimits())
    const isSound = stored !== null && targetKey(stored) === target
    if (!isSound) this.warn('override: one that is stored cannot be understood, and is ignored')
    const read = isSound
      ? new ActiveOverride({ ...stored, setAt: entry.setAtMs, expiresAt: entry.expiresAtMs })
      : null
    this.known.set(entry, read)
    return read
  }
}
