import { expect, it } from 'vitest'
import { askForAWhile } from './loop.js'

it('laps are asked whole, whatever the number of lanes, and each answer is counted', async () => {
  /** @type {string[]} */
  const asked = []
  const contestant = {
    /** @param {string} key */
    ask: async key => {
      asked.push(key)
      if (key.endsWith('thrown')) throw { remaining: 0 }
      return key.endsWith('allowed')
    },
    admits: Boolean,
  }
  const lap = (/** @type {number} */ number) => [`${number} allowed`, `${number} denied`, `${number} thrown`]
  const counted = await askForAWhile(contestant, { lap, firstLap: 3, inFlight: 2, seconds: 0.01 })
  expect(counted.requests).toBe(asked.length)
  expect(counted.requests).toBe(counted.laps * 3)
  expect(counted.denied).toBe(counted.laps * 2)
  expect(asked.slice(0, 3)).toEqual(lap(3))
})

it('an error is a failure, never a denial', async () => {
  const contestant = { ask: () => Promise.reject(new Error('gone')), admits: Boolean }
  const order = { lap: () => ['key'], firstLap: 0, inFlight: 1, seconds: 0 }
  await expect(askForAWhile(contestant, order)).rejects.toThrow('gone')
})
