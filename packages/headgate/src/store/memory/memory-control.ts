import { type Clock, systemClock } from '../../time/clock.js'
import {
  type ControlReading,
  type ControlStore,
  MAX_OVERRIDES,
  type StoredEntry,
  tooManyOverrides,
} from '../control-store.js'

/** Control and overrides of this process alone, lost with it. */
export function memoryControl(clock: Clock = systemClock): ControlStore {
  const control: Record<string, string> = {}
  /** Returned as it is, so that setting one does not take longer the more there are. */
  const entries = new Map<string, StoredEntry>()
  const watchers = new Set<(reading: ControlReading) => void>()
  /** The earliest time any of them ends: before that none has to be looked at. */
  let nextEndMs = Number.POSITIVE_INFINITY
  const started = { ms: clock.unixMs(), us: clock.nowUs() }

  /** Never runs backwards, so that a change of the system time ends no override. */
  function nowMs(): number {
    return started.ms + (clock.nowUs() - started.us) / 1000
  }

  function read(): ControlReading {
    dropEnded()
    return { control: { ...control }, overrides: { entries, nowMs: nowMs(), isMarked: true } }
  }

  function notify(): void {
    const reading = read()
    for (const watcher of watchers) watcher(reading)
  }

  function dropEnded(): void {
    const now = nowMs()
    if (now < nextEndMs) return
    nextEndMs = Number.POSITIVE_INFINITY
    for (const [target, { expiresAtMs }] of entries) {
      if (expiresAtMs <= now) entries.delete(target)
      else nextEndMs = Math.min(nextEndMs, expiresAtMs)
    }
  }

  return {
    read,
    setControl(fields) {
      Object.assign(control, fields)
      notify()
    },
    putOverride(target, text, ttlMs) {
      dropEnded()
      if (!entries.has(target) && entries.size >= MAX_OVERRIDES) throw tooManyOverrides()
      const now = nowMs()
      const expiresAtMs = Math.ceil(now + ttlMs)
      entries.set(target, { text, setAtMs: Math.floor(now), expiresAtMs })
      nextEndMs = Math.min(nextEndMs, expiresAtMs)
      notify()
    },
    removeOverride(target) {
      dropEnded()
      const wasThere = entries.delete(target)
      notify()
      return wasThere
    },
    watch(onChange) {
      watchers.add(onChange)
      onChange(read())
      return () => watchers.delete(onChange)
    },
  }
}
