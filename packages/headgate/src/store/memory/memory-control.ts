import { type Clock, systemClock } from '../../clock.js'
import {
  type ControlReading,
  type ControlStore,
  MAX_OVERRIDES,
  type StoredEntry,
  tooManyOverrides,
} from '../control-store.js'

type Entry = Omit<StoredEntry, 'expiresInMs'> & { readonly endsAtUs: number }

/** Control and overrides of this process alone, gone with it. */
export function memoryControl(clock: Clock = systemClock): ControlStore {
  const control: Record<string, string> = {}
  const entries = new Map<string, Entry>()
  const watchers = new Set<(reading: ControlReading) => void>()

  function read(): ControlReading & { readonly overrides: readonly StoredEntry[] } {
    const nowUs = clock.nowUs()
    for (const [target, { endsAtUs }] of entries) if (endsAtUs <= nowUs) entries.delete(target)
    const overrides = [...entries.values()].map(({ endsAtUs, ...entry }) => ({
      ...entry,
      expiresInMs: Math.ceil((endsAtUs - nowUs) / 1000),
    }))
    return { control: { ...control }, overrides }
  }

  function tell(): void {
    const reading = read()
    for (const watcher of watchers) watcher(reading)
  }

  return {
    read,
    setControl(fields) {
      Object.assign(control, fields)
      tell()
    },
    putOverride(target, text, ttlMs) {
      if (!entries.has(target) && read().overrides.length >= MAX_OVERRIDES) throw tooManyOverrides()
      const setAtMs = clock.unixMs()
      const endsAtUs = clock.nowUs() + ttlMs * 1000
      entries.set(target, { target, text, setAtMs, expiresAtMs: setAtMs + ttlMs, endsAtUs })
      tell()
    },
    removeOverride(target) {
      const wasThere = read().overrides.some(entry => entry.target === target)
      entries.delete(target)
      tell()
      return wasThere
    },
    watch(onChange) {
      watchers.add(onChange)
      onChange(read())
      return () => watchers.delete(onChange)
    },
  }
}
