/** Checks that share a call share nothing else: what becomes of one is no affair of its neighbours. */
import { expect, it } from 'vitest'
import { slidingWindowLog } from '../../src/algorithms/sliding-window-log.js'
import { NOBODY_LISTENS } from '../../src/check/plan.js'
import { Plans } from '../../src/check/plans.js'
import { memoryStore } from '../../src/store/memory/memory-store.js'
import { guardedStore } from '../../src/testing/guarded-store.js'
import { systemClock } from '../../src/time/clock.js'

const limit = slidingWindowLog({ limit: 5, window: '1h' })
const plans = new Plans(NOBODY_LISTENS)

it('a waiter that throws fails itself alone: its neighbours in the call are answered, once each', async () => {
  const store = guardedStore(memoryStore(), { onStoreFailure: 'throw' })
  const told: string[] = []
  const checks = ['user:1', 'user:2', 'user:3'].map(subject => {
    const check = plans.pending({
      alternatives: [[{ subject, scope: 'global', name: 'api.log-1h', limit, cost: 1 }]],
      shadow: [],
    })
    check.atUs = systemClock.nowUs()
    check.onSettled({
      settled() {
        told.push(subject)
        if (subject === 'user:2') throw new Error('broken')
      },
      failed: error => void told.push(String(error)),
    })
    return check
  })
  for (const check of checks) store.decide(check)
  await store.close()
  expect(told).toEqual(['user:1', 'user:2', 'user:3'])
})
