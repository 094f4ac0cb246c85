import { HeadgateError } from '../errors/headgate-error.js'
import type { MaybePromise } from './store.js'

/** The settings of a whole fleet, as stored: readers must not trust them. */
export interface ControlReading {
  /** The fields of the control hash, or why they could not be read, which must not hide the overrides. */
  readonly control: Readonly<Record<string, string>> | Error
  /** The same for the overrides, which must not hide the switches. */
  readonly overrides: StoredOverrides | Error
}

export interface StoredOverrides {
  /** By target. A new map if something has changed; unchanged entries are the same objects in it. */
  readonly entries: ReadonlyMap<string, StoredEntry>
  /** Unix time in milliseconds on the store's clock, when they were read. */
  readonly nowMs: number
  /** False if the store has never heard of any, or no longer knows: then none are there because it lost them. */
  readonly isMarked: boolean
}

export interface StoredEntry {
  readonly text: string
  /** Unix time in milliseconds on the store's clock. */
  readonly setAtMs: number
  readonly expiresAtMs: number
}

/** Where a store keeps what operators have set. Never asked by a request: it is watched in the background. */
export interface ControlStore {
  /** Whose fleet it is, if several may share a store. */
  readonly fleet?: { readonly prefix: string; readonly tenant: string; readonly service: string }
  /** Rejects if neither could be read. */
  read(): MaybePromise<ControlReading>
  /** Sets fields of the control hash. */
  setControl(fields: Readonly<Record<string, string>>): MaybePromise<void>
  putOverride(target: string, text: string, ttlMs: number): MaybePromise<void>
  /** Removes one; returns whether it existed. */
  removeOverride(target: string): MaybePromise<boolean>
  /**
   * Calls `onChange` now and within half a second of any change, until stopped; for a change made through this
   * store before it resolves, with the part that was changed.
   */
  watch(onChange: (reading: Partial<ControlReading>) => void, onError: (error: unknown) => void): () => void
}

/** More belong in a policy file. */
export const MAX_OVERRIDES = 10_000

export function tooManyOverrides(): HeadgateError {
  return new HeadgateError('ERR_HEADGATE_INVALID_OPTION', {
    field: 'override',
    expected: `at most ${MAX_OVERRIDES} at a time`,
    got: 'one more: put lasting ones into the policy file',
  })
}
