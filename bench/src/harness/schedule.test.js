import { expect, it } from 'vitest'
import { scheduleOf } from './schedule.js'

it('every sender asks as often as it says, in the order of time', () => {
  const { dueMs, sender } = scheduleOf([{ perSecond: 10 }, { perSecond: 3 }, { perSecond: 0.5 }], 4_000)
  const counts = [0, 0, 0]
  for (const from of sender) counts[from] = (counts[from] ?? 0) + 1
  expect(counts).toEqual([40, 12, 2])
  expect([...dueMs]).toEqual([...dueMs].sort((one, other) => one - other))
})

it('many senders are a steady stream, not a burst at each start', () => {
  const { dueMs } = scheduleOf(
    Array.from({ length: 1_000 }, () => ({ perSecond: 1 })),
    1_000,
  )
  const inTenths = Array.from({ length: 10 }, () => 0)
  for (const ms of dueMs) inTenths[Math.floor(ms / 100)] = (inTenths[Math.floor(ms / 100)] ?? 0) + 1
  for (const count of inTenths) expect(Math.abs(count - 100)).toBeLessThanOrEqual(2)
})

it('a sender that comes later and leaves earlier asks only in between', () => {
  const { dueMs } = scheduleOf([{ perSecond: 100, startMs: 500, endMs: 700 }], 1_000)
  expect(dueMs.length).toBe(20)
  expect(Math.min(...dueMs)).toBeGreaterThanOrEqual(500)
  expect(Math.max(...dueMs)).toBeLessThan(700)
})
