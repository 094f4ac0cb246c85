import { expect, it } from 'vitest'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { HeadgateError } from '../../errors/headgate-error.js'
import { manualClock } from '../../testing/manual-clock.js'
import { type BreakersOptions, withBreakers } from './breakers.js'
import type { Call, Send } from './call.js'

const limit = slidingWindowLog({ limit: 1, window: '1m' })
const sample = { subject: 'user:1', scope: 'global', name: 'p.log', limit, cost: 1 }
const CALL: Call<string> = { node: 'one', sample, checks: 1, send: () => Promise.resolve('reply') }

function setUp(next: Send, options: Partial<BreakersOptions> = {}) {
  const later: (() => void)[] = []
  const wait = (_: number, work: () => void): (() => void) => {
    later.push(work)
    return () => {}
  }
  const breakers = withBreakers(next, {
    ...{ failures: 5, silenceMs: 100, probeAfterMs: 500, quickMs: 15, clock: manualClock() },
    ...{ random: Math.random, timers: { after: wait, inBackground: wait }, onEvent: () => {} },
    probeCall: node => ({ ...CALL, node }),
    ...options,
  })
  const heard: string[] = []
  const ask = (): void =>
    breakers.send(CALL, {
      answered: () => void heard.push('answered'),
      failed: error => void heard.push((error as Error).message),
    })
  return { breakers, ask, heard, later }
}

const gone: Send = (_call, waiter) => waiter.failed(new Error('gone'))

it('breakers notify everybody, even if a connection cannot be replaced', () => {
  const { ask, heard } = setUp(gone, {
    onOpen() {
      throw new Error('cannot be replaced')
    },
  })
  for (let times = 0; times < 7; times++) ask()
  expect(heard.slice(0, 5)).toEqual(Array(5).fill('gone'))
  expect(heard.slice(5)).toEqual(Array(2).fill(expect.stringContaining('not asked')))
})

it('breakers stay open when a probe could not be sent', () => {
  const unsent = new HeadgateError(
    'ERR_HEADGATE_STORE_UNAVAILABLE',
    'not asked, because too many are unanswered',
  )
  const clock = manualClock()
  let error: Error = new Error('gone')
  const { ask, heard, later } = setUp((_call, waiter) => waiter.failed(error), { clock })
  for (let times = 0; times < 5; times++) ask()
  error = unsent
  clock.advanceMs(1_000)
  for (const probe of later.splice(0)) probe()
  ask()
  expect(heard.at(-1)).toContain('has stopped answering')
})

it('closed breakers probe nothing, even if closing itself makes calls fail', () => {
  const waiting: (() => void)[] = []
  const replaced: string[] = []
  const { breakers, ask, heard, later } = setUp(
    (_call, waiter) => waiting.push(() => waiter.failed(new Error('the connection is closed'))),
    { onOpen: node => replaced.push(node) },
  )
  for (let times = 0; times < 5; times++) ask()
  breakers.close()
  for (const fail of waiting) fail()
  expect(heard).toHaveLength(5)
  expect({ probes: later.length, replaced }).toEqual({ probes: 0, replaced: [] })
})
