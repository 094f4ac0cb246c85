import { seededRandom } from '../../src/testing/seeded-random.ts'

/** The randomness of the simulation, determined by the seed alone. */
export interface Dice {
  /** From 0 up to 1. */
  roll(): number
  chance(probability: number): boolean
  /** A whole number, both ends included. */
  whole(least: number, most: number): number
  between(least: number, most: number): number
  /** A wait with this mean, most of them short and a few long. */
  wait(mean: number): number
  pick<Item>(items: readonly [Item, ...Item[]]): Item
  /** Separate dice for one part, so that an additional roll in another part does not change this one's. */
  fork(label: string): Dice
}

export function createDice(seed: number): Dice {
  const roll = seededRandom(seed)
  return {
    roll,
    chance: probability => roll() < probability,
    whole: (least, most) => least + Math.floor(roll() * (most - least + 1)),
    between: (least, most) => least + roll() * (most - least),
    wait: mean => -Math.log(1 - roll()) * mean,
    pick: items => items[Math.floor(roll() * items.length)] ?? items[0],
    fork: label => createDice(hash(label, seed)),
  }
}

function hash(text: string, seed: number): number {
  let found = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b)
  for (let index = 0; index < text.length; index++) {
    found = Math.imul(found ^ text.charCodeAt(index), 0xc2b2ae35)
    found ^= found >>> 13
  }
  return found >>> 0
}
