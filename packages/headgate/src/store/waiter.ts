/**
 * Questions to a store that is elsewhere pass several stages, and each may have to wait. With a promise at every stage
 * a decision would cost half a dozen; so a stage hands on a waiter, and the only promise is the caller's.
 */
import type { Answer, Question } from '../engine/question.js'
import { type ShortWays, shortWaysOf, withShortWays } from './short-ways.js'
import type { Eventually, Store } from './store.js'

/** Told what became of something that takes time: one of the two, once. */
export interface Waiter<T> {
  answered(value: T): void
  /** Must not throw: nobody else would tell whoever waits. */
  failed(error: unknown): void
}

export type How = 'decide' | 'peek'

/** Puts a question to a store. The answer where it is known at once; otherwise null, and `waiter` is told, now or later. */
export type Put = (how: How, question: Question, waiter: Waiter<Answer>) => Answer | null

/** The way into any store that needs no promise of ours. */
export function putOf(store: Store): Put {
  return shortWaysOf(store).put ?? ((how, question, waiter) => putByPromise(store, how, question, waiter))
}

function putByPromise(store: Store, how: How, question: Question, waiter: Waiter<Answer>): Answer | null {
  try {
    const answer = store[how](question)
    if (!('then' in answer)) return answer
    tellLater(waiter, answer)
  } catch (error) {
    waiter.failed(error)
  }
  return null
}

/** The store that answers by `put`, and has these other short ways. */
export function storeWith<Rest extends Omit<Store, 'decide' | 'peek'>>(
  put: Put,
  rest: Rest,
  others: Omit<ShortWays, 'put'> = {},
): Omit<Rest, 'decide' | 'peek'> & Pick<Store, 'decide' | 'peek'> {
  const promised = (how: How, question: Question): Eventually<Answer> => {
    const answer = new LateAnswer()
    return put(how, question, answer) ?? answer.promise
  }
  const store = {
    ...rest,
    decide: (question: Question) => promised('decide', question),
    peek: (question: Question) => promised('peek', question),
  }
  return withShortWays(store, { ...others, put })
}

/** Tells the answer. A fault of whoever hears it is a failure like any other: somebody is still waiting. */
export function tell<T>(waiter: Waiter<T>, value: T): void {
  try {
    waiter.answered(value)
  } catch (error) {
    waiter.failed(error)
  }
}

/** Tells what becomes of a promise. */
export function tellLater<T>(waiter: Waiter<T>, work: Promise<T>): void {
  work.then(
    value => tell(waiter, value),
    error => waiter.failed(error),
  )
}

/** A promise that is made when somebody has to wait for it. */
export class Late<T> {
  private made: Promise<T> | null = null
  private settle: ((value: T) => void) | null = null
  private refuse: ((error: unknown) => void) | null = null

  get promise(): Promise<T> {
    this.made ??= new Promise((resolve, reject) => {
      this.settle = resolve
      this.refuse = reject
    })
    return this.made
  }

  protected resolve(value: T): void {
    if (this.settle === null) this.made ??= Promise.resolve(value)
    else this.settle(value)
  }

  protected reject(error: unknown): void {
    if (this.refuse === null) this.made ??= Promise.reject(error)
    else this.refuse(error)
  }
}

class LateAnswer extends Late<Answer> implements Waiter<Answer> {
  answered(answer: Answer): void {
    this.resolve(answer)
  }

  failed(error: unknown): void {
    this.reject(error)
  }
}
