import { describe, expect, it } from 'vitest'
import type { Answer, Question } from '../engine/question.js'
import { memoryStore } from './memory/memory-store.js'
import { shortWaysOf } from './short-ways.js'
import type { Store } from './store.js'
import { putOf, storeWith, tell, type Waiter } from './waiter.js'

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

/** A store that answers in a way of its own. */
function storeThat(decide: Store['decide']): Store {
  return { ...memoryStore(), decide }
}

describe('putting a question to a store that knows only promises', () => {
  it('answers at once where the store does, and tells nobody', () => {
    const { heard, waiter } = listening()
    expect(putOf(storeThat(() => ANSWER))('decide', QUESTION, waiter)).toBe(ANSWER)
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
  ])('tells %s', async (_, decide, told) => {
    const { heard, waiter } = listening()
    expect(putOf(storeThat(decide))('decide', QUESTION, waiter)).toBeNull()
    await Promise.resolve()
    expect(heard).toEqual([told])
  })
})

describe('a store that is put questions', () => {
  const rest = { source: 'redis', refund: () => [], reset() {}, close() {} } as const

  it('promises what the waiter will be told', async () => {
    const { decide } = storeWith((_how, _question, waiter) => {
      queueMicrotask(() => waiter.answered(ANSWER))
      return null
    }, rest)
    await expect(decide(QUESTION)).resolves.toBe(ANSWER)
  })

  it('keeps what the waiter was told before anybody waited', async () => {
    const answering = storeWith((how, _question, waiter) => {
      if (how === 'decide') waiter.answered(ANSWER)
      else waiter.failed(new Error('gone'))
      return null
    }, rest)
    await expect(answering.decide(QUESTION)).resolves.toBe(ANSWER)
    await expect(answering.peek(QUESTION)).rejects.toThrow('gone')
  })

  it('has its short ways to itself: a copy with another method is asked by that method', () => {
    const put = () => ANSWER
    const store = storeWith(put, rest)
    expect(shortWaysOf(store).put).toBe(put)
    expect(shortWaysOf({ ...store, decide: () => ANSWER })).toEqual({})
    expect(shortWaysOf({ ...memoryStore() })).toEqual({})
  })
})

it('a fault of whoever hears the answer is a failure like any other', () => {
  const heard: unknown[] = []
  tell(
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
