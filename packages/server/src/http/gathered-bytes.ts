const FIRST_BYTES = 1024

/**
 * The bytes of a body, gathered in one buffer: a list of chunks takes a hundred times their bytes if they come one by
 * one.
 */
export class GatheredBytes {
  private buffer: Buffer = Buffer.allocUnsafe(FIRST_BYTES)
  private used = 0

  get length(): number {
    return this.used
  }

  add(chunk: Buffer): void {
    const length = this.used + chunk.length
    if (length > this.buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, 2 * this.buffer.length))
      this.buffer.copy(larger, 0, 0, this.used)
      this.buffer = larger
    }
    chunk.copy(this.buffer, this.used)
    this.used = length
  }

  bytes(): Buffer {
    return this.buffer.subarray(0, this.used)
  }
}
