import { expect, it } from 'vitest'
import { keepLines } from '../../../test/support/kept-lines.ts'
import type { BreakerState } from './breaker.js'
import { logOutages, type OutageLogOptions } from './log-outages.js'

function setUp(options: Partial<OutageLogOptions> = {}) {
  const { logger, lines, fields } = keepLines()
  const time = { nowMs: 0 }
  const onEvent = logOutages({
    ...{
      logger,
      everyMs: 300_000,
      mode: 'local',
      nowMs: () => time.nowMs,
      sharedAmong: () => 3,
      hasQuotas: () => false,
    },
    nameOf: node => `Redis ${node || '10.0.0.5:6379'}`,
    ...options,
  })
  const fail = () => onEvent({ type: 'failure', code: 'ERR_HEADGATE_STORE', message: 'redis: gone' })
  const turn = (state: BreakerState, node = '', failure: 'silent' | 'rejected' = 'silent') => {
    const because = state === 'open' ? { calls: 5, withinMs: 210, failure } : null
    onEvent({ type: 'breaker', node, state, because })
  }
  const fallBack = () => onEvent({ type: 'fallback', mode: 'local', allowed: true })
  return { lines, fields, time, onEvent, fail, turn, fallBack }
}

it('the log says what the store did and what becomes of requests, and afterwards what it came to', () => {
  const { lines, fields, time, turn, fallBack } = setUp()
  turn('open')
  for (let decided = 0; decided < 17; decided++) fallBack()
  turn('half-open')
  turn('open')
  turn('half-open')
  time.nowMs = 2_340
  turn('closed')
  expect(lines).toEqual([
    'warn: Redis 10.0.0.5:6379 has not answered 5 calls in 210 ms: failing over to this process, at 1/3 of each limit, until it answers',
    'info: Redis 10.0.0.5:6379 is back: not called for 2.3 s, 17 decisions made without it',
  ])
  expect(fields).toEqual([
    { event: 'breaker', state: 'open', node: '', failure: 'silent', calls: 5, withinMs: 210 },
    { event: 'breaker', state: 'closed', node: '', outageMs: 2_340, decisions: 17 },
  ])
})

it.each([
  [
    1,
    'failing over to this process, at the full limit, of a quota at what is known to be left, until it answers',
  ],
  [
    3,
    'failing over to this process, at 1/3 of each limit, of a quota at 1/3 of what is known to be left, until it answers',
  ],
])('the log says what is left of a quota among %i', (among, consequence) => {
  const { lines, turn } = setUp({ sharedAmong: () => among, hasQuotas: () => true })
  turn('open')
  expect(lines).toEqual([`warn: Redis 10.0.0.5:6379 has not answered 5 calls in 210 ms: ${consequence}`])
})

it.each([
  ['local', 1, 'failing over to this process, at the full limit, until it answers'],
  ['open', 3, 'letting requests pass until it answers'],
  ['closed', 3, 'rejecting requests with 503 until it answers'],
] as const)('the log says the consequence of mode %s among %i', (mode, among, consequence) => {
  const { lines, turn } = setUp({ mode, sharedAmong: () => among })
  turn('open')
  expect(lines).toEqual([`warn: Redis 10.0.0.5:6379 has not answered 5 calls in 210 ms: ${consequence}`])
})

it('the log gives the reason of a node that said one', () => {
  const { lines, fail, turn } = setUp()
  fail()
  turn('open', '127.0.0.1:7000', 'rejected')
  expect(lines).toEqual([
    'warn: ERR_HEADGATE_STORE: redis: gone: failing over to this process, at 1/3 of each limit, for now',
    'warn: Redis 127.0.0.1:7000 has failed 5 calls in 210 ms (redis: gone): failing over to this process, at 1/3 of each limit, until it answers',
  ])
})

it('a failure is logged once in a while, with a count of what was left out', () => {
  const { lines, time, fail } = setUp()
  for (let count = 0; count < 100; count++) fail()
  time.nowMs = 300_000
  fail()
  expect(lines).toHaveLength(2)
  expect(lines[1]).toMatch(/redis: gone: .* \(and 99 more since the last time\)$/)
})

it('a breaker that opens and closes all the time is logged as seldom as anything else', () => {
  const { lines, time, turn } = setUp()
  for (; time.nowMs < 300_000; time.nowMs += 3_000) {
    for (const state of ['open', 'half-open', 'closed'] as const) turn(state)
  }
  turn('open')
  expect(lines).toHaveLength(3)
  expect(lines[2]).toMatch(/\(and 99 more since the last time\)$/)
})
