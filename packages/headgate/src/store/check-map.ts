import type { Check } from '../engine/question.js'

type Key = Pick<Check, 'subject' | 'scope' | 'name'>

/**
 * Values by the state a check is about, a bounded number of them: when it is full, one that was added early goes.
 * By name and then by subject, both as they came: joining them to one key for each request would take longer than
 * the two look-ups.
 */
export class CheckMap<Value> {
  readonly #max: number
  readonly #onDrop: (value: Value) => void
  readonly #byName = new Map<string, Map<string, Value>>()
  #size = 0

  constructor(max: number, onDrop: (value: Value) => void = () => {}) {
    this.#max = max
    this.#onDrop = onDrop
  }

  get(check: Key): Value | undefined {
    return this.#byName.get(nameOf(check))?.get(check.subject)
  }

  set(check: Key, value: Value): void {
    const name = nameOf(check)
    let values = this.#byName.get(name)
    if (values === undefined) {
      values = new Map()
      this.#byName.set(name, values)
    }
    if (!values.has(check.subject)) {
      if (this.#size >= this.#max) this.#dropOne()
      this.#size++
    }
    values.set(check.subject, value)
  }

  delete(check: Key): void {
    if (this.#byName.get(nameOf(check))?.delete(check.subject)) this.#size--
  }

  *values(): Generator<Value> {
    for (const values of this.#byName.values()) yield* values.values()
  }

  #dropOne(): void {
    for (const [name, values] of this.#byName) {
      const oldest = values.entries().next()
      if (oldest.done) {
        this.#byName.delete(name)
        continue
      }
      const [subject, value] = oldest.value
      values.delete(subject)
      this.#size--
      this.#onDrop(value)
      return
    }
  }
}

/** A limit's name has no line break, so that no scope can be written to look like another name. */
function nameOf({ scope, name }: Key): string {
  return scope === 'global' ? name : `${name}\n${scope}`
}
