import { type AddressInfo, createServer, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { reconnectDelayMs } from '../../src/store/redis/reconnect.js'
import { directRedisStore } from '../support/direct-store.ts'
import { LIBRARIES, singleClient } from './topologies.ts'

/** Returns a function that yields evenly spread numbers, the same ones every time. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 48_271) % 2_147_483_647
    return state / 2_147_483_647
  }
}

describe('the delay before connecting again', () => {
  it('the delay before connecting again is anything from 0 to a ceiling that doubles, then half a second to 900 ms', () => {
    for (const [attempt, leastMs, mostMs] of [
      [1, 0, 100],
      [2, 0, 200],
      [4, 0, 800],
      [5, 500, 900],
      [1_000, 500, 900],
    ] as const) {
      expect(reconnectDelayMs(attempt, () => 0)).toBe(leastMs)
      expect(reconnectDelayMs(attempt, () => 0.999_999)).toBe(mostMs)
    }
  })

  it('the delay before connecting again spreads a fleet of 200: after five seconds never a quarter of it in the same 100 ms', () => {
    const random = randomFrom(42)
    const outageMs = 30_000
    const attempts: number[] = []
    const back: number[] = []
    for (let client = 0; client < 200; client++) {
      let atMs = 0
      for (let attempt = 1; atMs <= outageMs; attempt++) {
        atMs += reconnectDelayMs(attempt, random)
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
    expect(Math.max(...back)).toBeLessThanOrEqual(outageMs + 1_000)
  })
})

// Side by side: each has a server of its own, and most of it is waiting.
it.concurrent.each(LIBRARIES)(
  '%s asks a server that takes connections and then resets them no more often than one that rejects',
  async library => {
    const attemptsMs: number[] = []
    const server = createServer((socket: Socket) => {
      attemptsMs.push(performance.now())
      socket.on('error', () => {})
      // Only now does the client know that it was connected.
      socket.once('data', () => socket.resetAndDestroy())
    })
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as AddressInfo
    const fromMs = performance.now()
    const store = directRedisStore(singleClient(port)(library).client)
    await sleep(6_000)
    await store.close()
    server.close()
    const settled = attemptsMs.filter(atMs => atMs >= fromMs + 2_000)
    expect(settled.length).toBeGreaterThan(2)
    // At least half a second between two; slightly less after a timer was late on a busy machine.
    expect(settled.length).toBeLessThanOrEqual(4_000 / 500 + 1)
  },
)
