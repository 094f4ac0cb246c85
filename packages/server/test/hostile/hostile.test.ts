/** The short selection of the attacks. For all of them, at length: `npm run proof -- hostile`. */
import { describe, expect, it } from 'vitest'
import { groups } from './registry.js'
import { toMarkdown } from './report.js'

const SEED = 1

for (const { title, attacks } of groups) {
  const short = attacks.filter(({ inShort }) => inShort)
  if (short.length === 0) continue
  describe(title, { timeout: 60_000 }, () => {
    for (const { name, expected, run } of short) {
      it(`the server holds against ${name}: ${expected}`, async () => {
        expect(await run({ seed: SEED, isShort: true })).not.toBe('')
      })
    }
  })
}

it('no two attacks have the same name', () => {
  const names = groups.flatMap(({ attacks }) => attacks.map(({ name }) => name))
  expect(names).toEqual([...new Set(names)])
})

it('the report shows what an attacker sent as text of one cell', () => {
  const row = { group: 'g', attack: 'a', does: 'd', expected: 'e', outcome: 'x|y\n\x1b[2J', held: false }
  expect(toMarkdown([row]).split('\n').at(-1)).toBe('| **a**: d | e | x\\|y  [2J | **no** |')
})
