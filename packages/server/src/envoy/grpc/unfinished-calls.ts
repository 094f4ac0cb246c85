/**
 * The calls whose message has not come whole, within bounds of their number and of the bytes that wait for the rest.
 * Beyond a bound the oldest is given up: an honest message comes at once, so it is never an honest one.
 */
export interface UnfinishedBounds {
  readonly calls: number
  readonly bytes: number
}

/** A call that can be given up. */
export interface Unfinished {
  /** Ends the call, and leaves every list it is in. */
  giveUp(): void
}

export class UnfinishedCalls {
  /** By call the bytes it holds, the oldest first. */
  private readonly held = new Map<Unfinished, number>()
  private bytes = 0

  constructor(private readonly bounds: UnfinishedBounds) {}

  add(call: Unfinished): void {
    this.held.set(call, 0)
    if (this.held.size > this.bounds.calls) this.oldest()?.giveUp()
  }

  /** Adds to what an unfinished call holds. */
  reserve(call: Unfinished, bytes: number): void {
    const before = this.held.get(call)
    if (before === undefined) return
    this.held.set(call, before + bytes)
    this.bytes += bytes
    while (this.bytes > this.bounds.bytes) this.oldest()?.giveUp()
  }

  delete(call: Unfinished): void {
    this.bytes -= this.held.get(call) ?? 0
    this.held.delete(call)
  }

  private oldest(): Unfinished | undefined {
    return this.held.keys().next().value
  }
}
