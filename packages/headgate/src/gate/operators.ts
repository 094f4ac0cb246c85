/**
 * What operators have set, as this process last saw it: control and overrides. Read from beside, never by a request;
 * when the store does not answer, what was last seen holds.
 */
import type { Clock } from '../clock.js'
import { unexpected } from '../errors.js'
import { type Control, controlFields, NORMAL, readControl } from '../policy/control.js'
import type { ConfiguredPolicy, InForce, TimedOverride } from '../policy/in-force.js'
import {
  type Override,
  type OverrideOptions,
  type OverrideTarget,
  parseOverride,
  parseTarget,
  readStoredOverride,
  targetKey,
} from '../policy/override.js'
import type { ControlReading, ControlStore, StoredEntry } from '../store/control-store.js'

/** The fleet's switches. */
export interface ControlDesk {
  /** As this process last saw them. */
  get(): Control
  /** For every process, within a second; in this one at once. */
  set(change: Partial<Control>): Promise<void>
}

/** Temporary replacements of a subject's or a rule's numbers. */
export interface OverrideDesk {
  /** Those in force, the latest to end last. */
  list(): readonly Override[]
  /** For every process, within a second; in this one at once. Takes the place of an older one for the same target. */
  set(override: OverrideOptions): Promise<void>
  /** Whether there was one. */
  remove(target: OverrideTarget): Promise<boolean>
}

export interface OperatorsOptions {
  readonly store: ControlStore
  readonly clock: Clock
  readonly nameSubject: (subject: string) => string
  /** What is in force, to say which names exist. */
  readonly inForce: () => InForce
  readonly onChange: (control: Control, overrides: readonly TimedOverride[]) => void
  readonly warn: (message: string) => void
}

export interface Operators {
  readonly control: ControlDesk
  readonly overrides: OverrideDesk
  /** Settles when the store was read once, or could not be. */
  ready(): Promise<void>
  stop(): void
}

export function createOperators(options: OperatorsOptions): Operators {
  const { store, clock, warn } = options
  let control = NORMAL
  let overrides: readonly TimedOverride[] = []
  let seenControl = ''
  let seenOverrides = ''
  let settle = () => {}
  const first = new Promise<void>(resolve => {
    settle = resolve
  })

  /** Warnings and rebuilding are for what changed, not for every look. */
  function apply(reading: ControlReading): void {
    settle()
    const isNew = [takeControl(reading), takeOverrides(reading)].includes(true)
    if (isNew) options.onChange(control, overrides)
  }

  function takeControl({ control: fields }: ControlReading): boolean {
    const fingerprint = JSON.stringify(fields)
    if (fingerprint === seenControl) return false
    seenControl = fingerprint
    control = readControl(fields, warn)
    return true
  }

  function takeOverrides({ overrides: entries }: ControlReading): boolean {
    if (entries instanceof Error) {
      warn(`overrides: could not be read, so those last seen hold: ${entries.message}`)
      return false
    }
    const fingerprint = JSON.stringify(
      entries.map(({ target, text, expiresAtMs }) => [target, text, expiresAtMs]),
    )
    if (fingerprint === seenOverrides) return false
    seenOverrides = fingerprint
    overrides = entries.flatMap(entry => timedOverride(entry, clock.nowUs(), warn))
    return true
  }

  const stop = store.watch(apply, error => {
    settle()
    warn(`control: could not be read, so what was last seen holds: ${(error as Error).message}`)
  })

  async function readNow(): Promise<void> {
    apply(await store.read())
  }

  return {
    control: {
      get: () => control,
      async set(change) {
        await store.setControl(controlFields(change))
        await readNow()
      },
    },
    overrides: {
      list() {
        const nowUs = clock.nowUs()
        return overrides
          .filter(({ endsAtUs }) => endsAtUs > nowUs)
          .map(({ override }) => override)
          .toSorted((one, other) => one.expiresAt - other.expiresAt)
      },
      async set(override) {
        const { target, stored, ttlMs } = parseOverride(override, options.nameSubject)
        refuseUnknownNames(stored, options.inForce())
        await store.putOverride(target, JSON.stringify(stored), ttlMs)
        await readNow()
      },
      async remove(target) {
        const named = parseTarget({ ...target }, options.nameSubject)
        const wasThere = await store.removeOverride(targetKey(named))
        await readNow()
        return wasThere
      },
    },
    ready: () => first,
    stop,
  }
}

function timedOverride(entry: StoredEntry, nowUs: number, warn: (message: string) => void): TimedOverride[] {
  const stored = readStoredOverride(entry.text)
  if (stored === null || targetKey(stored) !== entry.target) {
    warn('override: one that is stored cannot be understood, and is ignored')
    return []
  }
  const override = { ...stored, setAt: entry.setAtMs, expiresAt: entry.expiresAtMs }
  return [{ override, endsAtUs: nowUs + entry.expiresInMs * 1000 }]
}

/** A name that does not exist would wait for the day it does. */
function refuseUnknownNames(stored: object, inForce: InForce): void {
  if ('tier' in stored) refuseUnknown('tier', stored.tier as string, [...inForce.tiers.keys()])
  if ('rule' in stored)
    refuseUnknown(
      'rule',
      stored.rule as string,
      inForce.config.rules.map(({ name }) => name),
    )
  if ('limits' in stored) {
    const policies =
      'rule' in stored
        ? policiesOfRule(stored.rule as string, inForce)
        : [...inForce.policies.values(), ...inForce.tiers.values()]
    const ids = new Set(policies.flatMap(({ policy }) => policy.limits.map(({ limit }) => limit.id)))
    for (const id of Object.keys(stored.limits as object)) refuseUnknown('limits', id, [...ids])
  }
}

/** What a rule may charge. One without a charge leaves the caller to any tier, or to the file's default. */
function policiesOfRule(name: string, { config, policies, tiers }: InForce): readonly ConfiguredPolicy[] {
  const rule = config.rules.find(rule => rule.name === name)
  const charge = rule?.charge ?? config.default
  const named = charge.policy === undefined ? tiers.get(charge.tier) : policies.get(charge.policy)
  return [...(named === undefined ? [] : [named]), ...(rule?.charge === null ? tiers.values() : [])]
}

function refuseUnknown(field: string, name: string, known: readonly string[]): void {
  if (known.includes(name)) return
  throw unexpected(
    'ERR_HEADGATE_INVALID_OPTION',
    `override ${field}`,
    `one of ${known.join(', ') || 'none'}`,
    name,
  )
}
