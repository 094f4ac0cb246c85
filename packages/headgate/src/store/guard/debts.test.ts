import { expect, it } from 'vitest'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import type { Check } from '../../engine/question.js'
import { manualClock } from '../../testing/manual-clock.js'
import { Debts } from './debts.js'

const limit = slidingWindowLog({ limit: 100, window: '1m' })
const at = (subject: string): Check => ({ subject, scope: 'global', name: 'api', limit, cost: 100 })

it('there is room for so many debts, and for others when some are over', () => {
  const clock = manualClock()
  const debts = new Debts(clock, 100)
  for (let index = 0; index < 100; index++) {
    expect(debts.hasRoom()).toBe(true)
    debts.add(at(`user:${index}`), index < 30 ? 500_000 : 2_000_000)
  }
  expect(debts.hasRoom()).toBe(false)
  expect(debts.leftUs(at('user:0'))).toBe(500_000)
  expect(debts.leftUs(at('user:new'))).toBe(0)
  clock.advanceMs(1_000)
  expect(debts.hasRoom()).toBe(true)
  expect(debts.size).toBe(70)
  expect(debts.leftUs(at('user:99'))).toBe(1_000_000)
  clock.advanceMs(1_000)
  expect(debts.leftUs(at('user:99'))).toBe(0)
  expect(debts.size).toBe(69)
})
