import { describe, expect, it } from 'vitest'
import { fullJitterMs } from '../../src/store/redis/reconnect.js'

/** Evenly spread numbers, the same ones every time. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

describe('the delay before connecting again', () => {
  it('is anything from 0 to a ceiling that doubles up to two seconds', () => {
    for (const [attempt, ceilingMs] of [
      [1, 100],
      [2, 200],
      [5, 1_600],
      [6, 2_000],
      [1_000, 2_000],
    ] as const) {
      expect(fullJitterMs(attempt, () => 0)).toBe(0)
      expect(fullJitterMs(attempt, () => 0.999_999)).toBe(ceilingMs)
    }
  })

  it('spreads a fleet of 200: after five seconds never a quarter of it in the same 100 ms', () => {
    const random = randomFrom(42)
    const outageMs = 30_000
    const attempts: number[] = []
    const back: number[] = []
    for (let client = 0; client < 200; client++) {
      let atMs = 0
      for (let attempt = 1; atMs <= outageMs; attempt++) {
        atMs += fullJitterMs(attempt, random)
        attempts.push(atMs)
      }
      back.push(atMs)
    }
    const crowds = new Map<number, number>()
    for (const atMs of attempts.filter(time => time > 5_000)) {
      const slice = Math.floor(atMs / 100)
      crowds.set(slice, (crowds.get(slice) ?? 0) + 1)
    }
    expect(Math.max(...crowds.values())).toBeLessThanOrEqual(50)
    expect(Math.max(...back)).toBeLessThanOrEqual(outageMs + 3_000)
  })
})
