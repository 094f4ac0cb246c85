import { expect, it } from 'vitest'
import { logSparingly } from './log-sparingly.js'

it('logs a failure once in a while, with a count of what it kept quiet about', () => {
  const lines: string[] = []
  let nowMs = 0
  const onEvent = logSparingly(
    line => lines.push(line),
    1_000,
    () => nowMs,
  )
  const fail = (): void => onEvent({ type: 'failure', code: 'ERR_HEADGATE_STORE', message: 'redis: gone' })
  for (let time = 0; time < 100; time++) fail()
  nowMs = 1_000
  fail()
  expect(lines).toEqual([
    'ERR_HEADGATE_STORE: redis: gone',
    'ERR_HEADGATE_STORE: redis: gone (and 99 more since the last warning)',
  ])
})

it('logs a breaker that opens or closes, and none of the probes in between', () => {
  const lines: string[] = []
  const onEvent = logSparingly(
    line => lines.push(line),
    1_000,
    () => 0,
  )
  for (const state of ['open', 'half-open', 'open', 'half-open', 'open'] as const) {
    onEvent({ type: 'breaker', node: '', state })
  }
  onEvent({ type: 'breaker', node: '127.0.0.1:7000', state: 'closed' })
  expect(lines).toEqual(['the breaker is open', 'the breaker of 127.0.0.1:7000 is closed'])
})
