import { expect, it } from 'vitest'
import { quota } from '../../algorithms/quota.js'
import { slidingWindowLog } from '../../algorithms/sliding-window-log.js'
import type { Refund } from '../../check/check.js'
import { NOBODY_LISTENS } from '../../check/plan.js'
import { Plans } from '../../check/plans.js'
import { manualClock } from '../../testing/manual-clock.js'
import { LateCharges } from './late-charges.js'

const DAY_US = 86_400_000_000
const plans = new Plans(NOBODY_LISTENS)

function setUp() {
  const clock = manualClock()
  const calls: (readonly Refund[])[] = []
  const counts = { charged: 0, dropped: 0 }
  const store = { isAway: false, failure: null as Error | null, isUnsent: false }
  const ticks: (() => void)[] = []
  const after = (_ms: number, work: () => void) => {
    ticks.push(work)
    return () => {}
  }
  const late = new LateCharges(
    {
      clock,
      timers: { after, inBackground: after },
      groupOf: () => '',
      isAway: () => store.isAway,
      async charge(refunds) {
        calls.push(refunds)
        if (store.failure !== null) throw store.failure
      },
      wasNotSent: () => store.isUnsent,
      onCharged(_limit, units, isDropped) {
        counts[isDropped ? 'dropped' : 'charged'] += units
      },
    },
    250,
  )
  const admit = (subject: string, cost = 1, limit = quota({ limit: 100, per: 'day' }) as never) => {
    const check = plans.pending(
      { alternatives: [[{ subject, scope: 'global', name: 'plan.quota', limit, cost }]], shadow: [] },
      {},
    )
    check.set(0, 0, 10, DAY_US, clock.nowUs())
    check.charged = 0
    late.note(check)
  }
  /** The next try, and all that follows from it. */
  const tick = async () => {
    ticks.shift()?.()
    await new Promise(resolve => setImmediate(resolve))
  }
  return { clock, calls, counts, store, ticks, late, admit, tick }
}

it('units are charged by key, at most a hundred keys in a call, and those of more keys than there is room for are counted', async () => {
  const { admit, tick, calls, counts, ticks } = setUp()
  for (let time = 0; time < 2; time++) for (let user = 0; user < 260; user++) admit(`user:${user}`)
  await tick()
  expect(calls.map(({ length }) => length)).toEqual([100, 100, 50])
  expect(calls[0]?.[0]).toMatchObject({ check: { subject: 'user:0' }, units: -2, chargedAtUs: null })
  expect(counts).toEqual({ charged: 500, dropped: 20 })
  expect(ticks).toEqual([])
})

it('nothing is charged while the store is away, and all of it afterwards', async () => {
  const { admit, tick, calls, counts, store } = setUp()
  store.isAway = true
  admit('user:1', 3)
  await tick()
  expect(calls).toEqual([])
  store.isAway = false
  await tick()
  expect(counts).toEqual({ charged: 3, dropped: 0 })
})

it('a charge that was not sent is tried again; one that got no answer is dropped and counted', async () => {
  const { admit, tick, calls, counts, store } = setUp()
  store.failure = new Error('no')
  store.isUnsent = true
  admit('user:1', 3)
  await tick()
  expect(counts).toEqual({ charged: 0, dropped: 0 })
  store.isUnsent = false
  await tick()
  expect(calls.length).toBe(2)
  expect(counts).toEqual({ charged: 0, dropped: 3 })
})

it('units of a period that has ended are not taken from the next one', async () => {
  const { admit, tick, calls, counts, clock } = setUp()
  admit('user:1', 3)
  clock.advanceMs(DAY_US / 1000)
  admit('user:1', 4)
  await tick()
  expect(calls).toMatchObject([[{ units: -4 }]])
  expect(counts).toEqual({ charged: 4, dropped: 3 })
})

it('only limits that are kept like an account are charged late', async () => {
  const { admit, ticks } = setUp()
  admit('user:1', 1, slidingWindowLog({ limit: 100, window: '1h' }) as never)
  expect(ticks).toEqual([])
})
