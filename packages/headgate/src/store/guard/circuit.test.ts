import { expect, it } from 'vitest'
import type { Question } from '../../engine/question.js'
import { slidingWindowLog } from '../../policy/limits.js'
import { manualClock } from '../../testing/manual-clock.js'
import type { Store } from '../store.js'
import { withCircuit } from './circuit.js'
import { withFallback } from './fallback.js'

const limit = slidingWindowLog({ limit: 1, window: '1m' })
const check = { subject: 'user:1', scope: 'global', name: 'p.log', limit, cost: 1 }
const question: Question = { alternatives: [[check]], shadow: [] }

it('tells everybody, also when a connection cannot be replaced, or the node not be named', async () => {
  const gone = (): Promise<never> => Promise.reject(new Error('gone'))
  const behind: Store = { source: 'redis', decide: gone, peek: gone, refund: gone, reset: gone, close() {} }
  const later = (): (() => void) => () => {}
  let isNamed = true
  const circuit = withCircuit(behind, {
    ...{ failures: 2, probeAfterMs: 500, quickMs: 15, clock: manualClock(), random: Math.random },
    timers: { after: later, inBackground: later },
    nodeOf() {
      if (isNamed) return 'one'
      throw new Error('which?')
    },
    onOpen() {
      throw new Error('cannot be replaced')
    },
    onEvent: () => {},
  })
  const outcomes = await Promise.allSettled(Array.from({ length: 4 }, () => circuit.decide(question)))
  expect(outcomes.map(({ status }) => status)).toEqual(Array(4).fill('rejected'))
  isNamed = false
  const decided = { charged: 0, verdicts: [[]], shadow: [], source: 'local' } as const
  const local = { decide: () => decided, peek: () => decided, remember() {} }
  const guarded = withFallback(circuit, { mode: 'local', local, onEvent: () => {} })
  await expect(guarded.decide(question)).resolves.toBe(decided)
})

it('looks for nobody after it was closed, also when closing itself makes calls fail', async () => {
  const waiting: ((error: Error) => void)[] = []
  const never = (): Promise<never> => new Promise((_, reject) => waiting.push(reject))
  const behind: Store = {
    source: 'redis',
    ...{ decide: never, peek: never, refund: never, reset: never },
    close() {
      for (const fail of waiting) fail(new Error('the connection is closed'))
    },
  }
  const probes: (() => void)[] = []
  const replaced: string[] = []
  const inBackground = (_: number, work: () => void): (() => void) => {
    probes.push(work)
    return () => {}
  }
  const store = withCircuit(behind, {
    ...{ failures: 5, probeAfterMs: 500, quickMs: 15, clock: manualClock(), random: Math.random },
    timers: { after: inBackground, inBackground },
    nodeOf: () => 'one',
    onOpen: node => replaced.push(node),
    onEvent: () => {},
  })
  const calls = Array.from({ length: 5 }, () => store.decide(question))
  await store.close()
  const outcomes = await Promise.allSettled(calls)
  expect(outcomes.map(({ status }) => status)).toEqual(Array(5).fill('rejected'))
  expect({ probes: probes.length, replaced }).toEqual({ probes: 0, replaced: [] })
})
