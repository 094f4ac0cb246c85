import { expect, it } from 'vitest'
import { FixedWindows } from './fixed-windows.js'

const HOST = 'api.example.com'
const START_MS = 1_800_000_000_000

/** Plays answers of one host: when each came, and the whole seconds until its reset that it told. */
function play(answers: readonly (readonly [atMs: number, resetSeconds: number])[]): (number | null)[] {
  const windows = new FixedWindows()
  return answers.map(([atMs, seconds]) => windows.leftMs(HOST, seconds * 1_000, START_MS + atMs))
}

it('a window that is told to end at the same time for four seconds is a fixed one', () => {
  expect(
    play([
      [0, 60],
      [3_900, 57],
      [4_000, 56],
      [30_000, 30],
    ]),
  ).toEqual([null, null, 56_000, 30_000])
})

it('it ends at the earliest time that was told: the others were rounded up, or travelled for longer', () => {
  expect(
    play([
      [0, 10],
      [2_100, 8],
      [3_950, 6],
      [9_000, 1],
    ]),
  ).toEqual([null, null, null, 950])
})

it('the next window is to be proved anew', () => {
  expect(
    play([
      [0, 5],
      [4_500, 1],
      [5_100, 5],
      [9_200, 1],
    ]),
  ).toEqual([null, 500, null, 900])
})

it('a time at which everything is there again is none: it moves with the calls', () => {
  const sliding = Array.from({ length: 100 }, (_, call) => [call * 300, 10] as const)
  expect(play(sliding).every(left => left === null)).toBe(true)
  // A bucket of ten a second, first asked now and then, then drained.
  const now = Array.from({ length: 10 }, (_, call) => [call * 1_000, 50 - call] as const)
  const drained = Array.from({ length: 40 }, (_, call) => [10_000 + call * 100, 40 + call * 2] as const)
  const steady = Array.from({ length: 40 }, (_, call) => [14_000 + call * 100, 120] as const)
  expect(play([...now, ...drained, ...steady]).slice(12)).toEqual(Array(78).fill(null))
})

it('hosts are told apart, and many make no difference', () => {
  const windows = new FixedWindows()
  for (let host = 0; host < 5_000; host++) windows.leftMs(`${host}.example.com`, 60_000, START_MS)
  expect(windows.leftMs('0.example.com', 56_000, START_MS + 4_000)).toBe(null)
  expect(windows.leftMs('4999.example.com', 56_000, START_MS + 4_000)).toBe(56_000)
})
