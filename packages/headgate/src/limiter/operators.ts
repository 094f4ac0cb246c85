/**
 * Control and overrides as this process last saw them. They are read in the background, never by a request; if the
 * store does not answer, the last ones seen stay in force.
 */
import { unexpected } from '../errors/headgate-error.js'
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
}

/** Temporary replacements of a subject's or a rule's numbers. */
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
}

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
    const fingerprint = JSON.stringify(fields)
    if (fingerprint === seenControl) return
    seenControl = fingerprint
    control = readControl(fields, warn)
    options.onControl(control)
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
    } else options.overrides.take(stored)
  }

  const stop = store.watch(apply, error => {
    markRead()
    warnOfControl(error as Error)
  })

  function examine(override: OverrideOptions) {
    const parsed = parseOverride(override, options.nameSubject)
    const active = options.active()
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
        await store.setControl(controlFields(change))
      },
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
        await store.putOverride(target, JSON.stringify(stored), ttlMs)
      },
      async remove(target) {
        const named = parseTarget({ ...target }, options.nameSubject)
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
}

const NO_RULES: ReadonlySet<string> = new Set()

function rejectUnknown(field: string, name: string, known: Pick<ReadonlySet<string>, 'has' | 'keys'>): void {
  if (known.has(name)) return
  throw unexpected(
    'ERR_HEADGATE_INVALID_OPTION',
    `override ${field}`,
    `one of ${[...known.keys()].join(', ') || 'none'}`,
    name,
  )
}
