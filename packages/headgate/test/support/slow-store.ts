import type { Answer } from '../../src/engine/question.ts'
import type { Store } from '../../src/store/store.ts'

/** A remote store: its questions wait until they are let through, and are then answered in order. */
export function slowStore(engine: Store) {
  const waiting: (() => () => void)[] = []
  let calls = 0
  const later = <T>(work: () => T): Promise<T> =>
    new Promise(resolve => {
      calls++
      waiting.push(() => {
        const value = work()
        return () => resolve(value)
      })
    })
  const store: Store = {
    source: 'redis',
    decide: question => later(() => engine.decide(question) as Answer),
    peek: question => later(() => engine.peek(question) as Answer),
    refund: refunds => later(() => engine.refund(refunds) as readonly number[]),
    reset: checks => later(() => void engine.reset(checks)),
    close() {},
  }
  /** Executes what waits; the answers arrive when the returned function is called. */
  const decideNow = (count = waiting.length): (() => void) => {
    const answers = waiting.splice(0, count).map(work => work())
    return () => {
      for (const answer of answers) answer()
    }
  }
  const letThrough = (count?: number): void => decideNow(count)()
  return { store, letThrough, decideNow, calls: () => calls }
}
