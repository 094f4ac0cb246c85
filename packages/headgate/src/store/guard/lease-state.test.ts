import { expect, it } from 'vitest'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import type { Check, Question } from '../../engine/question.js'
import { leaseOf } from './lease-state.js'

const LEASE = { max: 10, ttlUs: 1_000_000 }
const limit = { ...slidingWindowLog({ limit: 1_000, window: '1m' }), lease: LEASE }
const check: Check = { subject: 'user:1', scope: 'global', name: 'api.log-1m', limit, cost: 1 }
const hourly: Check = { ...check, name: 'api.log-1h' }
const { lease: _lease, ...plain } = limit

function asked(checks: readonly Check[], question: Partial<Question> = {}): Question {
  return { alternatives: [checks], shadow: [], ...question }
}

it('a question is leased where all its checks may be, of one subject and one cost', () => {
  expect(leaseOf(asked([check]))).toBe(LEASE)
  expect(leaseOf(asked([check, hourly]))).toBe(LEASE)
  expect(leaseOf(asked([{ ...check, cost: 3 }]))).toBe(LEASE)
})

it.each<[string, Question]>([
  ['costs nothing', asked([{ ...check, cost: 0 }])],
  ['asks nothing', asked([])],
  ['has a check that may not be leased', asked([check, { ...hourly, limit: plain }])],
  ['is about two subjects', asked([check, { ...hourly, subject: 'user:2' }])],
  ['has two costs', asked([check, { ...hourly, cost: 2 }])],
  ['has two alternatives', asked([check], { alternatives: [[check], [hourly]] })],
  ['has a shadow check', asked([check], { shadow: [hourly] })],
])('a question is not leased that %s', (_, question) => {
  expect(leaseOf(question)).toBeNull()
})
