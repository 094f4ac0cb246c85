/** Questions that share a call share nothing else: what becomes of one is no affair of its neighbours. */
import { expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import type { Answer, Question } from '../../src/engine/question.js'
import { createPipeline } from '../../src/store/guard/pipeline.js'
import { parsePipelineOptions } from '../../src/store/guard/pipeline-options.js'
import type { Outcome } from '../../src/store/guard/remote.js'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import { systemClock, systemTimers } from '../../src/time/clock.js'

const limit = slidingWindowLog({ limit: 5, window: '1h' })
const questions: readonly Question[] = ['user:1', 'user:2', 'user:3'].map(subject => ({
  alternatives: [[{ subject, scope: 'global', name: 'api.log-1h', limit, cost: 1 }]],
  shadow: [],
}))

/** A pipeline to a store that answers a whole call, of which `change` may make another answer. */
function setUp(change: (outcomes: Outcome[]) => Outcome[] = outcomes => outcomes) {
  const store = memoryStore()
  const calls: number[] = []
  const remote = {
    ...{ source: 'redis' as const, isSplit: false, laneOf: () => 0, nodeOf: () => '', nameOf: () => '' },
    async ask(action: 'decide' | 'peek', asked: readonly Question[]) {
      calls.push(asked.length)
      return change(await Promise.all(asked.map(async question => store[action](question))))
    },
    refund: async () => [],
    renew: async () => [],
    reset: async () => {},
    heartbeat: async () => ({ live: 1, recent: 1, rewinds: 0 }),
    close() {},
  }
  const settings = { ...parsePipelineOptions({ onStoreFailure: 'throw', processes: 1 }), maxChecks: 64 }
  const world = { clock: systemClock, timers: systemTimers, random: Math.random }
  return { pipeline: createPipeline(remote, settings, world), calls }
}

/** A waiter that writes down what it is told, and may break when it is answered. */
function createWaiter(onAnswer: () => void = () => {}) {
  const told: unknown[] = []
  let settled = (): void => {}
  const isTold = new Promise<void>(resolve => {
    settled = resolve
  })
  const waiter = {
    answered({ charged }: Answer) {
      told.push(charged)
      onAnswer()
      settled()
    },
    failed(error: unknown) {
      told.push(error instanceof Error ? ((error as { code?: string }).code ?? error.message) : error)
      settled()
    },
  }
  return { waiter, told, isTold }
}

it('a waiter that throws fails itself alone: its neighbours in the call are answered, once each', async () => {
  const { pipeline, calls } = setUp()
  const broken = (): void => {
    throw new Error('broken')
  }
  const waiters = [createWaiter(), createWaiter(broken), createWaiter()]
  for (const [index, { waiter }] of waiters.entries())
    pipeline.ask('decide', questions[index] as Question, waiter)
  await Promise.all(waiters.map(({ isTold }) => isTold))
  // Closing waits for calls under way, and counts this one once.
  await pipeline.close()
  expect(calls).toEqual([3])
  expect(waiters.map(({ told }) => told)).toEqual([[0], [0, 'broken'], [0]])
})

it('a question that a call leaves without an answer fails, and the others are answered', async () => {
  const { pipeline } = setUp(outcomes => outcomes.slice(0, 2))
  const waiters = [createWaiter(), createWaiter(), createWaiter()]
  for (const [index, { waiter }] of waiters.entries())
    pipeline.ask('decide', questions[index] as Question, waiter)
  await Promise.all(waiters.map(({ isTold }) => isTold))
  await pipeline.close()
  expect(waiters.map(({ told }) => told)).toEqual([[0], [0], ['ERR_HEADGATE_STORE_REPLY']])
})
