/**
 * Control and overrides as this process last saw them. They are read in the background, never by a request; if the
 * store does not answer, the last ones seen stay in force.
 */
import type { Limit } from '../algorithms/algorithm.js'
import { unknownName } from '../errors/reject-unknown.js'
import type { Warn } from '../observe/throttled-log.js'
import type { ActiveConfig } from '../policy/active-config.js'
import type { ActivePolicies } from '../policy/active-policies.js'
import { type Control, controlFields, NORMAL, readControl } from '../policy/control.js'
import {
  type MeantTarget,
  type Override,
  type OverrideOptions,
  parseOverride,
  parseTarget,
  type StoredOverride,
  targetKey,
} from '../policy/override.js'
import { effectOf, type FindConcerned, type OverrideEffect } from '../policy/override-effect.js'
import type { ControlReading, ControlStore } from '../store/control-store.js'
import type { Clock } from '../time/clock.js'
import { runAtOnce, runInSlices } from '../time/steps.js'
import type { OverrideCache } from './override-cache.js'

/** The fleet's switches. */
export interface ControlApi {
  /** Returns them as this process last saw them. */
  get(): Control
  /** Reads them from the store; rejects if it cannot be asked. */
  read(): Promise<Control>
  /** Changes them for every process within a second, and in this one at once. */
  set(change: Partial<Control>): Promise<void>
  /**
   * Changes them in this process alone, at once: for an emergency while the store cannot be reached. Written to the store
   * as soon as it answers, unless somebody has changed them there.
   */
  setHere(change: Partial<Control>): void
  /**
   * Returns what the store has lost and this process still applies; null if nothing. Switches that were off are on again
   * after five minutes, unless somebody sets or restores them.
   */
  lost(): LostSettings | null
  /** Writes what was lost back to the store, for every process; returns it. */
  restore(): Promise<LostSettings | null>
  /** Accepts the loss: nothing of it is applied any more, in any process. Returns what it was. */
  forget(): Promise<LostSettings | null>
}

/** Switches and overrides that a store lost: restarted empty, or flushed. */
export interface LostSettings {
  /** The Unix time in milliseconds at which this process noticed. */
  readonly sinceMs: number
  /** Null if the switches were not lost. */
  readonly control: Control | null
  readonly overrides: readonly Override[]
}

/** Temporary replacements of a subject's, a rule's or a policy's numbers. */
export interface OverridesApi {
  /**
   * Returns those in force, sorted by expiry. With thousands the first call takes a while; `read` does not block
   * requests.
   */
  list(): readonly Override[]
  /** Reads those in the store without blocking requests, however many; rejects if it cannot be asked. */
  read(): Promise<readonly Override[]>
  /**
   * Sets one for every process within a second, and in this one at once. Replaces an older one for the same target.
   *
   * @example
   * await limiter.overrides.set({ policy: 'api', limit: 500, ttl: '1h' })
   * await limiter.overrides.set({ policy: 'api', subject: 'user:42', limit: 500, ttl: '1h', reason: 'launch day' })
   */
  set(override: OverrideOptions): Promise<void>
  /** Returns what an override would change. Throws, like `set`, for one that can change nothing. */
  preview(override: OverrideOptions): OverrideEffect
  /** Removes one; returns whether it existed. */
  remove(target: MeantTarget): Promise<boolean>
}

export interface OperatorsOptions {
  readonly store: ControlStore
  readonly nameSubject: (subject: unknown) => string
  /** The active configuration, which says which names exist. */
  readonly active: () => ActivePolicies
  /** Finds whose limits an override would replace. */
  readonly concerned: FindConcerned
  /** Called when the switches have changed. */
  readonly onControl: (control: Control) => void
  /** Where the overrides that were read are kept. */
  readonly overrides: OverrideCache
  readonly warn: Warn
  readonly clock: Clock
}

/** How long a process lets everything pass on its own memory. */
const OFF_FOR_MS = 5 * 60_000

export interface Operators {
  readonly control: ControlApi
  readonly overrides: OverridesApi
  /** Settles when the store was read once, or could not be. */
  ready(): Promise<void>
  stop(): void
}

export function createOperators(options: OperatorsOptions): Operators {
  const { store, warn } = options
  let control = NORMAL
  let seenControl: string | null = null
  let seenFields: Readonly<Record<string, string>> = {}
  /** When this process noticed that the store had lost the one or the other; null if it has not. */
  const lostSinceMs: { control: number | null; overrides: number | null } = { control: null, overrides: null }
  /** The store's time at the last reading. */
  let storeMs = 0
  /** What was changed in this process alone, and is to be written to the store. */
  let unwritten: Partial<Control> | null = null
  let markRead = () => {}
  const first = new Promise<void>(resolve => {
    markRead = resolve
  })

  /** Warns and rebuilds only for what changed, not at every read. */
  function apply({ control: fields, overrides: stored }: Partial<ControlReading>): void {
    if (fields !== undefined) takeControl(fields)
    if (stored !== undefined) takeOverrides(stored)
    if (fields !== undefined && stored !== undefined) markRead()
  }

  function takeControl(fields: ControlReading['control']): void {
    if (fields instanceof Error) return void warnOfControl(fields)
    if (unwritten !== null) {
      const isChanged = seenControl !== null && JSON.stringify(fields) !== seenControl
      if (!isChanged || Object.keys(fields).length === 0) return void write(unwritten)
      unwritten = null
    }
    // The switches are set and never removed: where there were some and are none, the store has lost them.
    if (Object.keys(fields).length === 0 && Object.keys(seenFields).length > 0) return void loseControl()
    lostSinceMs.control = null
    seenFields = fields
    const fingerprint = JSON.stringify(fields)
    if (fingerprint === seenControl) return
    seenControl = fingerprint
    control = readControl(fields, warn)
    options.onControl(control)
  }

  /** Writes a change of this process to a store that answers again; the reply is then taken as any other. */
  async function write(change: Partial<Control>): Promise<void> {
    unwritten = null
    try {
      await store.setControl(controlFields(change))
    } catch {
      unwritten ??= change
    }
  }

  function loseControl(): void {
    lostSinceMs.control ??= options.clock.unixMs()
    const isOver = options.clock.unixMs() - lostSinceMs.control >= OFF_FOR_MS
    if (isOver && !control.enabled) {
      warn(
        'control: the store has lost the switch by which limits are off, and it was not set again within five minutes: they are on again',
      )
      control = { ...control, enabled: true }
      options.onControl(control)
    }
    warnOfLoss()
  }

  function warnOfLoss(): void {
    const { control: switches, overrides } = lost() ?? { control: null, overrides: [] }
    const what = [
      ...(switches === null
        ? []
        : [`limits ${switches.enabled ? 'on' : 'off'}, multiplier ${switches.multiplier}`]),
      ...(overrides.length === 0
        ? []
        : [overrides.length === 1 ? '1 override' : `${overrides.length} overrides`]),
    ]
    const next = 'headgate restore writes it back, headgate restore --clear drops it'
    warn(
      `the store has lost what operators had set (${what.join(', ')}); this process goes on applying it; ${next}`,
      'the store has lost what operators had set',
    )
  }

  function lost(): LostSettings | null {
    const { control: ofControl, overrides: ofOverrides } = lostSinceMs
    if (ofControl === null && ofOverrides === null) return null
    return {
      sinceMs: Math.min(ofControl ?? Number.POSITIVE_INFINITY, ofOverrides ?? Number.POSITIVE_INFINITY),
      control: ofControl === null ? null : control,
      overrides: ofOverrides === null ? [] : runAtOnce(options.overrides.list()),
    }
  }

  /** Before an operator changes anything: a change must not be all that is left of what was set. */
  async function restore(): Promise<LostSettings | null> {
    const found = lost()
    if (lostSinceMs.control !== null) await store.setControl(controlFields(control))
    if (lostSinceMs.overrides !== null) {
      for (const [target, { text, expiresAtMs }] of [...options.overrides.liveAt(storeMs)]) {
        await store.putOverride(target, text, Math.max(1, Math.ceil(expiresAtMs - storeMs)))
      }
    }
    return found
  }

  async function forget(): Promise<LostSettings | null> {
    const found = lost()
    if (lostSinceMs.control !== null) await store.setControl(controlFields(NORMAL))
    // Removing leaves a mark, by which every process sees that nothing is meant to be there.
    if (lostSinceMs.overrides !== null) await store.removeOverride('subject lost')
    return found
  }

  function warnOfControl({ message }: Error): void {
    warn(`control: could not be read, so what was last seen holds: ${message}`, 'control could not be read')
  }

  function takeOverrides(stored: ControlReading['overrides']): void {
    if (stored instanceof Error) {
      warn(
        `overrides: could not be read, so those last seen hold: ${stored.message}`,
        'overrides could not be read',
      )
      return
    }
    storeMs = stored.nowMs
    const isLost =
      !stored.isMarked && stored.entries.size === 0 && !options.overrides.liveAt(stored.nowMs).next().done
    if (isLost) {
      lostSinceMs.overrides ??= options.clock.unixMs()
      return void warnOfLoss()
    }
    lostSinceMs.overrides = null
    options.overrides.take(stored)
  }

  const stop = store.watch(apply, error => {
    markRead()
    warnOfControl(error as Error)
  })

  function examine(override: OverrideOptions) {
    const active = options.active()
    const limitsOf = (policy: string): readonly Limit[] => {
      rejectUnknown('policy', policy, active.policies)
      return active.policies.get(policy)?.limits.map(({ limit }) => limit) ?? []
    }
    const { tierLimits } = active
    const parsed = parseOverride(override, options.nameSubject, { tierLimits, limitsOf })
    rejectUnknownNames(parsed.stored, active)
    return { ...parsed, effect: effectOf(active, parsed.stored, options.concerned) }
  }

  async function readNow(): Promise<ControlReading> {
    const reading = await store.read()
    apply(reading)
    return reading
  }

  return {
    control: {
      get: () => control,
      async read() {
        const { control: found } = await readNow()
        if (found instanceof Error) throw found
        return control
      },
      async set(change) {
        const fields = controlFields(change)
        await restore()
        await store.setControl(fields)
        unwritten = null
      },
      setHere(change) {
        controlFields(change)
        unwritten = { ...unwritten, ...change }
        control = { ...control, ...change }
        options.onControl(control)
      },
      lost,
      restore,
      forget,
    },
    overrides: {
      list: () => runAtOnce(options.overrides.list()),
      async read() {
        const { overrides: found } = await readNow()
        if (found instanceof Error) throw found
        return runInSlices(options.overrides.list())
      },
      preview: override => examine(override).effect,
      async set(override) {
        const { target, stored, ttlMs } = examine(override)
        await restore()
        await store.putOverride(target, JSON.stringify(stored), ttlMs)
      },
      async remove(target) {
        const named = parseTarget({ ...target }, options.nameSubject)
        await restore()
        return store.removeOverride(targetKey(named))
      },
    },
    ready: () => first,
    stop,
  }
}

/** A name that does not exist would take effect on the day it does. */
function rejectUnknownNames(stored: StoredOverride, active: ActivePolicies | ActiveConfig): void {
  if ('tier' in stored) rejectUnknown('tier', stored.tier, active.tiers)
  const rulesByName = 'rulesByName' in active ? active.rulesByName : NO_RULES
  if (stored.rule !== undefined) rejectUnknown('rule', stored.rule, rulesByName)
  if (stored.policy !== undefined) rejectUnknown('policy', stored.policy, active.policies)
}

const NO_RULES: ReadonlySet<string> = new Set()

function rejectUnknown(field: string, name: string, known: Pick<ReadonlySet<string>, 'has' | 'keys'>): void {
  if (!known.has(name)) throw unknownName(`override ${field}`, name, known.keys())
}
