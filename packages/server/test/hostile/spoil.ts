import type { Dice } from '../../../headgate/test/simulation/dice.js'

const BYTES = [
  '\0',
  '\x01',
  '\t',
  '\n',
  '\r',
  '\r\n',
  ' ',
  ':',
  ',',
  ';',
  '"',
  '\x7f',
  '\x80',
  '\xff',
] as const

/** Returns the text with one to three changes: a byte flipped, inserted or left out, or a part repeated. */
export function spoil(text: string, dice: Dice): string {
  let spoilt = text
  for (let changes = dice.whole(1, 3); changes > 0; changes--) {
    // Heads are short and bodies long: most of what can go wrong is at the beginning.
    const at = dice.whole(0, Math.min(spoilt.length, dice.chance(0.8) ? 300 : spoilt.length))
    const before = spoilt.slice(0, at)
    const after = spoilt.slice(at)
    const kind = dice.whole(0, 3)
    if (kind === 0) spoilt = `${before}${dice.pick(BYTES)}${after.slice(1)}`
    else if (kind === 1) spoilt = `${before}${dice.pick(BYTES)}${after}`
    else if (kind === 2) spoilt = `${before}${after.slice(dice.whole(1, 8))}`
    else spoilt = `${before}${after.slice(0, dice.whole(1, 40))}${after}`
  }
  return spoilt
}
