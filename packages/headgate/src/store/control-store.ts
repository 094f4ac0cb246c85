import { HeadgateError } from '../errors.js'
import type { Eventually } from './store.js'

/** What operators have set for a whole fleet, as it is stored: who reads it must not trust it. */
export interface ControlReading {
  /** The fields of the control hash. */
  readonly control: Readonly<Record<string, string>>
  /** Or why they could not be read: that must not keep the switches from being seen. */
  readonly overrides: readonly StoredEntry[] | Error
}

export interface StoredEntry {
  readonly target: string
  readonly text: string
  /** Unix time in milliseconds on the store's clock. */
  readonly setAtMs: number
  readonly expiresAtMs: number
  /** What is left of it, whatever anybody's clock says. */
  readonly expiresInMs: number
}

/** Where a store keeps what operators have set. Never asked by a request: it is watched from beside. */
export interface ControlStore {
  /** Whose fleet it is, where several may share a store. */
  readonly fleet?: { readonly prefix: string; readonly tenant: string }
  read(): Eventually<ControlReading>
  /** Sets fields of the control hash. */
  setControl(fields: Readonly<Record<string, string>>): Eventually<void>
  putOverride(target: string, text: string, ttlMs: number): Eventually<void>
  /** Whether there was one. */
  removeOverride(target: string): Eventually<boolean>
  /** Calls `onChange` now and again within half a second of any change, until stopped. */
  watch(onChange: (reading: ControlReading) => void, onError: (error: unknown) => void): () => void
}

/** More are a policy file. */
export const MAX_OVERRIDES = 10_000

export function tooManyOverrides(): HeadgateError {
  return new HeadgateError(
    'ERR_HEADGATE_INVALID_OPTION',
    `override: expected at most ${MAX_OVERRIDES} at a time; put lasting ones into the policy file`,
  )
}
