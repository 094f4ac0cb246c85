import { type Clock, systemClock } from '../../time/clock.js'
import {
  type ControlReading,
  type ControlStore,
  MAX_OVERRIDES,
  type StoredEntry,
  tooManyOverrides,
} from '../control-store.js'

/** Control and overrides of this process alone, gone with it. */
export function memoryControl(clock: Clock = systemClock): ControlStore {
  const control: Record<string, string> = {}
  /** Handed out as it is, so that setting one does not take longer for every other. */
  const entries = new Map<string, StoredEntry>()
  const watchers = new Set<(reading: ControlReading) => void>()
  const started = { ms: clock.unixMs(), us: clock.nowUs() }

  /** Never runs backwards, so that a change of the system's time ends no override. */
  function nowMs(): number {
    return started.ms + (clock.nowUs() - started.us) / 1000
  }

  function read(): ControlReading {
    return { control: { ...control }, overrides: { entries, nowMs: nowMs() } }
  }

  function notify(): void {
    const reading = read()
    for (const watcher of watchers) watcher(reading)
  }

  function makeRoom(): void {
    const now = nowMs()
    for (const [target, { expiresAtMs }] of entries) if (expiresAtMs <= now) entries.delete(target)
    if (entries.size >= MAX_OVERRIDES) throw tooManyOverrides()
  }

  return {
    read,
    setControl(fields) {
      Object.assign(control, fields)
      notify()
    },
    putOverride(target, text, ttlMs) {
      if (!entries.has(target) && entries.size >= MAX_OVERRIDES) makeRoom()
      entries.set(target, { text, setAtMs: Math.floor(nowMs()), expiresAtMs: Math.ceil(nowMs() + ttlMs) })
      notify()
    },
    removeOverride(target) {
      const found = entries.get(target)
      entries.delete(target)
      notify()
      return found !== undefined && found.expiresAtMs > nowMs()
    },
    watch(onChange) {
      watchers.add(onChange)
      onChange(read())
      return () => watchers.delete(onChange)
    },
  }
}
