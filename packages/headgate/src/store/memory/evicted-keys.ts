/**
 * Keys that were evicted at their limit, and until when something of them counts: a Bloom filter whose cells hold
 * times. A key is written to a few cells, each keeping the latest time, and its value is the earliest in its cells. That
 * is never earlier than what was written, so no caller gets free by being evicted; it can be later, or exist for a key
 * that was never written, if others share all its cells. Nothing has to be removed, because times pass.
 */

/**
 * Cells for each key a store keeps: with as many evicted as kept, 1 in 10,000 other keys is mistaken for one of
 * them.
 */
const CELLS_PER_KEY = 32
const LEAST_BITS = 12
/** 32 MB. */
const MOST_BITS = 22
/** Cells a key is written to. */
const WAYS = 4

export class EvictedKeys {
  private readonly cells: Float64Array
  private readonly mask: number
  /** Random, so that no caller can find out which keys share cells. */
  private readonly seed: number
  private step = 0

  constructor(maxKeys: number, random: () => number = Math.random) {
    const bits = Math.ceil(Math.log2(maxKeys * CELLS_PER_KEY))
    this.cells = new Float64Array(2 ** Math.min(MOST_BITS, Math.max(LEAST_BITS, bits)))
    this.mask = this.cells.length - 1
    this.seed = Math.floor(random() * 2 ** 32)
  }

  note(table: string, key: string, untilUs: number): void {
    let place = this.firstPlace(table, key)
    for (let way = 0; way < WAYS; way++, place += this.step) {
      const cell = place & this.mask
      if ((this.cells[cell] as number) < untilUs) this.cells[cell] = untilUs
    }
  }

  /** Returns until when something of the key may count; in the past if it was not evicted at its limit. */
  untilUs(table: string, key: string): number {
    let place = this.firstPlace(table, key)
    let earliest = Number.POSITIVE_INFINITY
    for (let way = 0; way < WAYS; way++, place += this.step) {
      earliest = Math.min(earliest, this.cells[place & this.mask] as number)
    }
    return earliest
  }

  /** Leaves the distance from one cell to the next in `step`: odd, so that no two are the same. */
  private firstPlace(table: string, key: string): number {
    const first = hash(key, hash(table, this.seed))
    this.step = hash(key, first) | 1
    return first
  }
}

/** Murmur3's mixing, one character at a time. */
function hash(text: string, seed: number): number {
  let mixed = seed
  for (let index = 0; index < text.length; index++) {
    const scrambled = Math.imul(text.charCodeAt(index), 0xcc9e2d51)
    mixed ^= Math.imul((scrambled << 15) | (scrambled >>> 17), 0x1b873593)
    mixed = (Math.imul((mixed << 13) | (mixed >>> 19), 5) + 0xe6546b64) | 0
  }
  mixed = Math.imul(mixed ^ text.length ^ (mixed >>> 16), 0x85ebca6b)
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35)
  return mixed ^ (mixed >>> 16)
}
