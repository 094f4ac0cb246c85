import { describe, expect, it } from 'vitest'
import type { Answer, Question } from '../engine/question.js'
import { memoryStore } from './memory/memory-store.js'
import { type Stage, toStage, toStore } from './stage.js'
import type { Store } from './store.js'
import { settle, type Waiter } from './waiter.js'

const QUESTION: Question = { alternatives: [[]], shadow: [] }
const ANSWER: Answer = { charged: 0, verdicts: [[]], shadow: [] }

function listening() {
  const heard: unknown[] = []
  const waiter: Waiter<Answer> = {
    answered: answer => void heard.push(answer),
    failed: error => void heard.push(error),
  }
  return { heard, waiter }
}

/** Creates a store that answers in a way of its own. */
function storeThat(decide: Store['decide']): Store {
  return { ...memoryStore(), decide }
}

describe('asking a store that knows only promises', () => {
  it('an answer that is there at once is returned, and the waiter is told nothing', () => {
    const { heard, waiter } = listening()
    expect(toStage(storeThat(() => ANSWER)).ask('decide', QUESTION, waiter)).toBe(ANSWER)
    expect(heard).toEqual([])
  })

  it.each([
    ['the answer, when it is there', () => Promise.resolve(ANSWER), ANSWER],
    ['why there is none', () => Promise.reject(new Error('gone')), new Error('gone')],
    [
      'what the store threw',
      () => {
        throw new Error('broken')
      },
      new Error('broken'),
    ],
  ])('a store that knows only promises tells the waiter %s', async (_, decide, told) => {
    const { heard, waiter } = listening()
    expect(toStage(storeThat(decide)).ask('decide', QUESTION, waiter)).toBeNull()
    await Promise.resolve()
    expect(heard).toEqual([told])
  })
})

describe('a store made of a stage', () => {
  const stageThat = (ask: Stage['ask']): Stage => ({
    ...{ source: 'redis', ask, refund: () => [], renew: () => [], reset() {}, close() {} },
  })

  it('a store made of a stage promises what the waiter will hear', async () => {
    const { decide } = toStore(
      stageThat((_action, _question, waiter) => {
        queueMicrotask(() => waiter.answered(ANSWER))
        return null
      }),
      {},
    )
    await expect(decide(QUESTION)).resolves.toBe(ANSWER)
  })

  it('a store made of a stage keeps what the waiter heard before anybody waited', async () => {
    const answering = stageThat((action, _question, waiter) => {
      if (action === 'decide') waiter.answered(ANSWER)
      else waiter.failed(new Error('gone'))
      return null
    })
    const store = toStore(answering, {})
    await expect(store.decide(QUESTION)).resolves.toBe(ANSWER)
    await expect(store.peek(QUESTION)).rejects.toThrow('gone')
  })

  it('a store made of a stage is asked by its stage, and a copy with another method by that method', () => {
    const stage = stageThat(() => ANSWER)
    const store = toStore(stage, {})
    expect(toStage(store)).toBe(stage)
    const other: Answer = { ...ANSWER, charged: -1 }
    const { waiter } = listening()
    expect(toStage({ ...store, decide: () => other }).ask('decide', QUESTION, waiter)).toBe(other)
    expect(
      toStage(Object.create(store, { decide: { value: () => other } })).ask('decide', QUESTION, waiter),
    ).toBe(other)
    expect(toStage({ ...memoryStore() }).oneUnit).toBeUndefined()
  })
})

it('a fault of a waiter is a failure like any other', () => {
  const heard: unknown[] = []
  settle(
    {
      answered() {
        throw new Error('deaf')
      },
      failed: error => void heard.push(error),
    },
    ANSWER,
  )
  expect(heard).toEqual([new Error('deaf')])
})
