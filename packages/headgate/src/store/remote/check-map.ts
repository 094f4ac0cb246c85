import type { Check } from '../../check/check.js'

type Key = Pick<Check, 'subject' | 'scope' | 'name'>

/**
 * Values by the state a check is about, a bounded number of them, in two generations like `BoundedMap`. Keyed by
 * name and then by subject: joining them to one key for each request would take longer than the two lookups.
 */
export class CheckMap<Value> {
  readonly #perGeneration: number
  readonly #onDrop: ((value: Value) => void) | null
  #young = new Generation<Value>()
  #old = new Generation<Value>()

  /** `max` is rounded up to an even number. `onDrop` is called with values that were dropped to make room. */
  constructor(max: number, onDrop: ((value: Value) => void) | null = null) {
    this.#perGeneration = Math.ceil(max / 2)
    this.#onDrop = onDrop
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(check: Key): Value | undefined {
    const name = nameOf(check)
    const value = this.#young.get(name, check.subject)
    if (value !== undefined || this.#old.size === 0) return value
    const older = this.#old.get(name, check.subject)
    if (older !== undefined) this.set(check, older)
    return older
  }

  set(check: Key, value: Value): void {
    const name = nameOf(check)
    if (this.#old.size > 0) this.#old.delete(name, check.subject)
    this.#young.set(name, check.subject, value)
    if (this.#young.size > this.#perGeneration) this.#grow(name, check.subject, value)
  }

  delete(check: Key): void {
    const name = nameOf(check)
    this.#young.delete(name, check.subject)
    this.#old.delete(name, check.subject)
  }

  *values(): Generator<Value> {
    yield* this.#young.values()
    yield* this.#old.values()
  }

  /** Starts a new generation with the value that did not fit. */
  #grow(name: string, subject: string, value: Value): void {
    const dropped = this.#old
    this.#young.delete(name, subject)
    this.#old = this.#young
    this.#young = new Generation()
    this.#young.set(name, subject, value)
    if (this.#onDrop !== null) for (const one of dropped.values()) this.#onDrop(one)
  }
}

class Generation<Value> {
  readonly #byName = new Map<string, Map<string, Value>>()
  size = 0

  get(name: string, subject: string): Value | undefined {
    return this.#byName.get(name)?.get(subject)
  }

  set(name: string, subject: string, value: Value): void {
    let values = this.#byName.get(name)
    if (values === undefined) {
      values = new Map()
      this.#byName.set(name, values)
    }
    const before = values.size
    values.set(subject, value)
    this.size += values.size - before
  }

  delete(name: string, subject: string): void {
    const values = this.#byName.get(name)
    if (!values?.delete(subject)) return
    this.size--
    // A scope may come from a request: a name without values must not stay.
    if (values.size === 0) this.#byName.delete(name)
  }

  *values(): Generator<Value> {
    for (const values of this.#byName.values()) yield* values.values()
  }
}

/** A limit's name has no line break, so that no scope can be written to look like another name. */
function nameOf({ scope, name }: Key): string {
  return scope === 'global' ? name : `${name}\n${scope}`
}
