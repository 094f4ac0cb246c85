import { expect, it } from 'vitest'
import { manualClock } from '../../testing/manual-clock.js'
import { createFirstConnection } from './first-connection.js'

function setUp() {
  const clock = manualClock()
  const timers = new Set<() => void>()
  const after = (_ms: number, work: () => void): (() => void) => {
    timers.add(work)
    return () => void timers.delete(work)
  }
  let connect = (): void => {}
  const connection = createFirstConnection({
    ready: () =>
      new Promise(resolve => {
        connect = resolve
      }),
    ...{ problem: () => undefined, deadlineMs: 30, connectTimeoutMs: 1_000, clock },
    timers: { after, inBackground: after },
  })
  return { clock, connection, timers, connect: () => connect() }
}

it('no more than 10,000 calls wait for the first connection', async () => {
  const { connection, connect, timers } = setUp()
  const held = Array.from({ length: 10_000 }, () => connection.wait())
  await expect(connection.wait()).rejects.toThrow('not connected')
  connect()
  await Promise.all(held)
  expect(timers.size).toBe(0)
  expect(connection.wait()).toBeUndefined()
})

it('nobody is kept waiting for the first connection when the time for it is over', async () => {
  const { clock, connection } = setUp()
  clock.advanceUs(1_000_000)
  await expect(connection.wait()).rejects.toMatchObject({ code: 'ERR_HEADGATE_STORE' })
})
