import { expect, it } from 'vitest'
import { trendOf, verdictsOf } from './verdicts.js'

/** Makes an hour of rounds in which memory and descriptors grow at the given rates. @param {{ mbPerHour?: number, descriptorsPerRound?: number, lost?: number, loopMs?: number }} what */
function hour({ mbPerHour = 0, descriptorsPerRound = 0, lost = 0, loopMs = 3 }) {
  return Array.from({ length: 120 }, (_, index) => {
    const atHours = (index + 1) / 120
    const bytes = 100e6 + mbPerHour * 1e6 * atHours + (index % 5) * 1e5
    const descriptors = 30 + Math.floor(descriptorsPerRound * index)
    const figures = {
      residentBytes: bytes,
      heapBytes: bytes / 4,
      descriptors,
      loopP99Ms: loopMs,
      loopWorstMs: 9,
    }
    return { fault: 'frozen', atHours, allowed: 10, denied: 1, lost: index === 50 ? lost : 0, ...figures }
  })
}

/** @param {Parameters<typeof hour>[0]} what */
const missed = what =>
  verdictsOf(hour(what))
    .filter(({ outcome }) => outcome === 'missed')
    .map(({ claim }) => claim)

it('a steady gateway meets everything', () => {
  expect(verdictsOf(hour({})).map(({ outcome }) => outcome)).toEqual(Array(5).fill('met'))
})

it('each thing that goes wrong is named', () => {
  expect(missed({ mbPerHour: 8 })).toEqual([
    'memory in RAM grows by less than 1 MB an hour',
    'the heap grows by less than 1 MB an hour',
  ])
  expect(missed({ descriptorsPerRound: 0.2 })).toEqual(['open files and sockets stay as they are'])
  expect(missed({ lost: 1 })).toEqual(['no request is lost'])
  expect(missed({ loopMs: 25 })).toEqual(['the p99 delay of the event loop is below 20 ms'])
})

it('two rounds say nothing about growth', () => {
  const outcomes = verdictsOf(hour({}).slice(0, 3)).map(({ outcome }) => outcome)
  expect(outcomes.filter(outcome => outcome === 'too short to say')).toHaveLength(2)
})

it('a leak of two an hour is found under a sawtooth', () => {
  const points = Array.from({ length: 120 }, (_, index) => ({
    atHours: index / 120,
    value: 100 + (2 * index) / 120 + (index % 7) * 0.2,
  }))
  const { perHour, uncertainty } = trendOf(points)
  expect(Math.abs(perHour - 2)).toBeLessThan(uncertainty)
  expect(uncertainty).toBeLessThan(0.5)
})

it('two points are no trend', () => {
  expect(
    trendOf([
      { atHours: 0, value: 1 },
      { atHours: 1, value: 5 },
    ]).uncertainty,
  ).toBe(Number.POSITIVE_INFINITY)
})
