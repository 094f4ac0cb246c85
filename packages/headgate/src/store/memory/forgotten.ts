/**
 * Keys that had to be forgotten at their limit, and until when something of them counts: a Bloom filter whose cells hold
 * times. A key is written to a few cells, each keeping the latest time, and what is known of it is the earliest in its
 * cells. That is never earlier than what was written, so nobody is better off for having been forgotten; it can be later,
 * or there for a key that was never written, when others share all its cells. Nothing has to be removed: times pass.
 */

/** Cells for each key a store keeps, so that as many forgotten as kept make 1 in 10,000 strangers pass for one of them. */
const CELLS_PER_KEY = 32
const LEAST_BITS = 12
/** 32 MB. */
const MOST_BITS = 22
/** Cells a key is written to. */
const WAYS = 4

export class Forgotten {
  private readonly cells: Float64Array
  private readonly mask: number
  /** Nobody outside can tell which keys share cells, so nobody can choose whom to be taken for. */
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

  /** Until when something of the key may count; in the past when it was not forgotten at its limit. */
  untilUs(table: string, key: string): number {
    let place = this.firstPlace(table, key)
    let earliest = Number.POSITIVE_INFINITY
    for (let way = 0; way < WAYS; way++, place += this.step) {
      earliest = Math.min(earliest, this.cells[place & this.mask] as number)
    }
    return earliest
  }

  /** Leaves in `step` how far it is from one place to the next: odd, so that no two are the same. */
  private firstPlace(table: string, key: string): number {
    const first = hash(key, hash(table, this.seed))
    this.step = hash(key, first) | 1
    return first
  }
}

/** Murmur3's mixing, a character at a time. */
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
