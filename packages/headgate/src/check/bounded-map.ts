/**
 * A map with a bounded number of values, in two generations. When the young one is full it becomes the old one, and
 * the former old one is dropped; a value that is read moves back to the young one. So the most recently used half
 * of `max` always stays, and no write ever searches for a victim: finding the first entry of a `Map` from which
 * entries are deleted walks over every deleted one.
 */
export class BoundedMap<Value> {
  readonly #perGeneration: number
  #young = new Map<string, Value>()
  #old = new Map<string, Value>()

  /** `max` is rounded up to an even number. */
  constructor(max: number) {
    this.#perGeneration = Math.ceil(max / 2)
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(key: string): Value | undefined {
    const value = this.#young.get(key)
    if (value !== undefined || this.#old.size === 0) return value
    const older = this.#old.get(key)
    if (older !== undefined) this.set(key, older)
    return older
  }

  set(key: string, value: Value): void {
    if (this.#young.size >= this.#perGeneration && !this.#young.has(key)) {
      this.#old = this.#young
      this.#young = new Map()
    } else if (this.#old.size > 0) {
      this.#old.delete(key)
    }
    this.#young.set(key, value)
  }

  delete(key: string): void {
    this.#young.delete(key)
    this.#old.delete(key)
  }
}
