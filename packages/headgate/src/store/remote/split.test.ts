import { expect, it } from 'vitest'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import { NOBODY_LISTENS } from '../../check/plan.js'
import { Plans } from '../../check/plans.js'
import { HeadgateError } from '../../errors/headgate-error.js'
import { Splitter } from './split.js'

const UNSENT = new HeadgateError('ERR_HEADGATE_STORE_UNAVAILABLE', 'redis: not called')
const UNANSWERED = new HeadgateError('ERR_HEADGATE_STORE_TIMEOUT', 'redis: no answer')
const limit = slidingWindowLog({ limit: 10, window: '1h' })

/** Asks two slots; each charges, or fails. */
function decide(first: Error | null, second: Error | null, refund: Error | null = null) {
  const state = (subject: string) => ({ subject, scope: 'global', name: `p.${limit.id}`, limit, cost: 1 })
  const check = new Plans(NOBODY_LISTENS).pending(
    { alternatives: [[state('user:1'), state('org:2')]], shadow: [] },
    {},
  )
  const refunded: string[] = []
  const splitter = new Splitter({
    ask(part) {
      const failure = part.subject === 'user:1' ? first : second
      if (failure !== null) return part.fail(failure)
      part.set(0, 0, 9, 1, 1)
      part.charged = 0
      part.settle('redis')
    },
    async refund(refunds) {
      if (refund !== null) throw refund
      refunded.push(...refunds.map(one => one.check.subject))
      return [1]
    },
  })
  return { refunded, decided: splitter.decide(check) }
}

it('what one slot charged is given back when another was not asked, and the request is known not to be charged', async () => {
  const { decided, refunded } = decide(null, UNSENT)
  await expect(decided).rejects.toBe(UNSENT)
  expect(refunded).toEqual(['user:1'])
})

it('a request that one slot may have charged is not taken for one that was not sent', async () => {
  await expect(decide(UNSENT, UNANSWERED).decided).rejects.toBe(UNANSWERED)
  await expect(decide(UNANSWERED, UNSENT).decided).rejects.toBe(UNANSWERED)
  await expect(decide(null, UNSENT, UNANSWERED).decided).rejects.toBe(UNANSWERED)
})
