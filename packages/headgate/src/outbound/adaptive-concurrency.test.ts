/** Clients that give up, and clients that take more than their part, in virtual time. */
import { describe, expect, it } from 'vitest'
import { playImpatient } from '../../test/support/impatient-clients.js'
import { seededRandom } from '../testing/seeded-random.js'
import {
  type AdaptiveConcurrency,
  adaptiveConcurrency,
  type ReleaseUpstream,
} from './adaptive-concurrency.js'
import type { Priority } from './fair-permits.js'

const LONG = process.env.HEADGATE_LONG === '1'
const SEEDS = LONG ? [7, 3, 11] : [7]
const LOADS = LONG ? [1.5, 3] : [1.5]
const FIXED = [2, 4, 8, 12, 20]
/** The upstream has a tenth of its capacity from then on, for 14 seconds. */
const DROP_MS = 6_000
const BACK_MS = 20_000

function between(usefulAtMs: readonly number[], fromMs: number, toMs: number): number {
  return usefulAtMs.filter(atMs => atMs >= fromMs && atMs < toMs).length
}

describe.each([
  ['clients give up, and the upstream works on for nobody', { leaves: true, worksForNobody: true }],
  ['clients give up, and the upstream notices', { leaves: true, worksForNobody: false }],
  ['clients wait', { leaves: false, worksForNobody: true }],
])('an upstream falls to a tenth for 14 s: %s', (_, clients) => {
  it.each([
    [10, 100, 'rejected at once'],
    [100, 20, 'rejected at once'],
    [10, 100, 'waiting for a turn'],
  ])(
    '%i at once, %i ms each, %s: at least four fifths of the best fixed limit, within 2 s',
    async (workers, serviceMs, turn) => {
      for (const load of LOADS) {
        for (const seed of SEEDS) {
          const play = (floor: number, ceiling: number) =>
            playImpatient({
              ...clients,
              phases: [
                { fromMs: 0, workers, serviceMs },
                { fromMs: DROP_MS, workers: workers / 10, serviceMs },
                { fromMs: BACK_MS, workers, serviceMs },
              ],
              untilMs: BACK_MS + 4_000,
              rate: (load * workers * 1_000) / serviceMs,
              patienceMs: [6 * serviceMs, 6 * serviceMs],
              waitMs: turn === 'rejected at once' ? 0 : serviceMs,
              random: seededRandom(seed),
              limiting: (clock, timers) => adaptiveConcurrency({ floor, ceiling, clock, timers }),
            })
          const { usefulAtMs } = await play(2, 1_000)
          const fixed = await Promise.all(FIXED.map(limit => play(limit, limit)))
          const bestOf = (fromMs: number) =>
            Math.max(...fixed.map(one => between(one.usefulAtMs, fromMs, BACK_MS)))
          const words = `load ${load}, seed ${seed}`
          expect(between(usefulAtMs, DROP_MS, BACK_MS) / bestOf(DROP_MS), words).toBeGreaterThanOrEqual(0.8)
          const converged = between(usefulAtMs, DROP_MS + 2_000, BACK_MS) / bestOf(DROP_MS + 2_000)
          expect(converged, `${words}, from 2 s on`).toBeGreaterThanOrEqual(0.8)
        }
      }
    },
  )
})

describe('a request that was given up', () => {
  const manual = () => {
    let nowUs = 0
    const clock = { nowUs: () => nowUs, unixMs: () => nowUs / 1_000 }
    const pass = (ms: number) => {
      nowUs += ms * 1_000
    }
    return { clock, pass }
  }

  it('it keeps its permit until one that began later is answered, and one may always ask', () => {
    const { clock, pass } = manual()
    const upstream = adaptiveConcurrency({ floor: 2, ceiling: 2, clock })
    const gone = [upstream.enter(), upstream.enter()]
    pass(10)
    for (const leave of gone) leave?.('abandoned')
    expect(upstream.inFlight).toBe(0)
    const probe = upstream.enter()
    expect([probe, upstream.enter()]).toEqual([expect.any(Function), null])
    probe?.('answered')
    expect(
      [upstream.enter(), upstream.enter(), upstream.enter()].filter(leave => leave !== null),
    ).toHaveLength(2)
  })

  it('those that were given up are counted only up to the ceiling', () => {
    const { clock, pass } = manual()
    const upstream = adaptiveConcurrency({ floor: 1, ceiling: 3, clock })
    for (let count = 0; count < 10_000; count++) {
      upstream.enter()?.('abandoned')
      pass(1)
    }
    upstream.enter()?.('answered')
    expect(upstream.hasRoom).toBe(true)
  })
})

/** Clients that each send one request after the other to an upstream that takes any number at once. */
async function playCallers(forMs: number, groups: readonly CallerGroup[]): Promise<number[]> {
  let nowMs = 0
  const timed: { readonly atMs: number; readonly work: () => void }[] = []
  const after = (ms: number, work: () => void) => {
    const one = { atMs: nowMs + ms, work }
    timed.push(one)
    return () => void timed.splice(timed.indexOf(one) >>> 0, 1)
  }
  const clock = { nowUs: () => nowMs * 1_000, unixMs: () => nowMs }
  const timers = { after, inBackground: after }
  const upstream = adaptiveConcurrency({ floor: 4, ceiling: 500, maxWaiting: 1_000, clock, timers })
  const answered = groups.map(() => 0)
  const fromMs = groups.at(-1)?.fromMs ?? 0
  const keepAsking = async (index: number, group: CallerGroup, caller: string) => {
    const pass = (ms: number) => new Promise<void>(resolve => void after(ms, resolve))
    await pass(group.fromMs)
    for (;;) {
      const asking = { caller, kind: group.kind, priority: group.priority ?? 'normal' }
      const timeoutMs = Math.min(500, Math.max(20, upstream.restMs(group.kind) ?? 500))
      const leave = await upstream.acquire({ timeoutMs }, asking)
      await pass(leave === null ? 20 : group.serviceMs)
      if (leave !== null && nowMs >= fromMs) answered[index] = (answered[index] ?? 0) + 1
      leave?.('answered')
    }
  }
  for (const [index, group] of groups.entries()) {
    for (let count = 0; count < group.clients; count++) {
      void keepAsking(index, group, group.isOneCaller ? group.kind : `${group.kind} ${count}`)
    }
  }
  for (; nowMs < forMs; nowMs++) {
    for (const one of timed.filter(({ atMs }) => atMs <= nowMs)) {
      timed.splice(timed.indexOf(one), 1)
      one.work()
    }
    for (let turn = 0; turn < 6; turn++) await Promise.resolve()
  }
  return answered
}

interface CallerGroup {
  readonly clients: number
  readonly isOneCaller: boolean
  readonly kind: string
  readonly serviceMs: number
  readonly fromMs: number
  readonly priority?: Priority
}

describe('40 honest clients beside one caller with 120 slow requests', () => {
  const honest = { clients: 40, isOneCaller: false, kind: 'GET /item', serviceMs: 10, fromMs: 0 }
  it.each([
    ['on another route', { kind: 'GET /report', isOneCaller: true, isFirst: false }],
    ['on the same route', { kind: 'GET /item', isOneCaller: true, isFirst: false }],
    [
      'of many addresses, by a rule of low priority',
      { kind: 'batch', isOneCaller: false, isFirst: false, priority: 'low' as const },
    ],
    ['that were there first', { kind: 'GET /report', isOneCaller: true, isFirst: true }],
  ])('%s: they keep at least four fifths of what they had', async (_, { isFirst, ...kind }) => {
    const greedy = { clients: 120, serviceMs: 2_000, ...kind }
    const nobody = { ...honest, clients: 0, fromMs: 1_000 }
    const [alone = 0] = await playCallers(9_000, [honest, nobody])
    const [beside = 0] = await playCallers(
      9_000,
      isFirst
        ? [{ ...honest, fromMs: 500 }, { ...greedy, fromMs: 0 }, nobody]
        : [honest, { ...greedy, fromMs: 1_000 }],
    )
    expect(beside / alone, `${beside} of ${alone}`).toBeGreaterThanOrEqual(0.8)
  })
})

describe('callers', () => {
  const fixed = (limit: number, maxWaiting?: number) =>
    adaptiveConcurrency({ floor: limit, ceiling: 4 * limit, ...(maxWaiting !== undefined && { maxWaiting }) })
  const fill = (upstream: AdaptiveConcurrency, caller: string, priority: Priority = 'normal') => {
    const taken: ReleaseUpstream[] = []
    for (;;) {
      const leave = upstream.enter({ caller, priority })
      if (leave === null) return taken
      taken.push(leave)
    }
  }

  it('who is alone may take all permits; others then get their part all the same', () => {
    const upstream = fixed(12)
    expect(fill(upstream, 'greedy')).toHaveLength(12)
    expect(fill(upstream, 'second')).toHaveLength(6)
    expect(fill(upstream, 'third')).toHaveLength(4)
    expect(fill(upstream, 'greedy')).toHaveLength(0)
  })

  it('the excess is bounded, and never above the ceiling', () => {
    const upstream = fixed(12)
    fill(upstream, 'greedy')
    let others = 0
    for (let caller = 0; caller < 1_000; caller++) others += fill(upstream, `caller ${caller}`).length
    // Each had its part when it came: half, a third, a quarter of the limit, and so on.
    expect(others).toBeLessThanOrEqual(12 * 2)
    const full = adaptiveConcurrency({ floor: 4, ceiling: 4 })
    fill(full, 'greedy')
    expect(full.enter({ caller: 'other' })).toBeNull()
  })

  it('a permit that becomes free goes to the waiting caller with the fewest', async () => {
    const upstream = adaptiveConcurrency({ floor: 2, ceiling: 2 })
    const [first, second] = fill(upstream, 'greedy')
    const order: string[] = []
    const wait = (caller: string) =>
      upstream.acquire({ timeoutMs: 60_000 }, { caller }).then(leave => {
        order.push(caller)
        return leave
      })
    const waiting = [wait('greedy'), wait('greedy'), wait('other')]
    first?.('answered')
    ;(await waiting[2])?.('answered')
    second?.('answered')
    for (const one of waiting.slice(0, 2)) (await one)?.('answered')
    expect(order).toEqual(['other', 'greedy', 'greedy'])
  })

  it('if too many wait, the last of the caller with the most waiting gives way', async () => {
    const upstream = adaptiveConcurrency({ floor: 1, ceiling: 1, maxWaiting: 3 })
    const [leave] = fill(upstream, 'greedy')
    const wait = (caller: string) => upstream.acquire({ timeoutMs: 60_000 }, { caller })
    const greedy = [wait('greedy'), wait('greedy'), wait('greedy')]
    const other = wait('other')
    expect(await greedy[2]).toBeNull()
    leave?.('answered')
    ;(await other)?.('answered')
    for (const one of greedy.slice(0, 2)) (await one)?.('answered')
    expect(upstream.inFlight).toBe(0)
  })

  it('the most important are served first, the least important give way, and each class keeps a part', async () => {
    const upstream = adaptiveConcurrency({ floor: 20, ceiling: 40, maxWaiting: 4 })
    const low = fill(upstream, 'a', 'low')
    expect(low).toHaveLength(20)
    expect(upstream.hasRoomFor({ caller: 'b', priority: 'high' })).toBe(true)
    const high = fill(upstream, 'b', 'high')
    expect(high.length).toBeGreaterThanOrEqual(2)
    const wait = (caller: string, priority: Priority) =>
      upstream.acquire({ timeoutMs: 60_000 }, { caller, priority })
    const waiting = [wait('a', 'low'), wait('a', 'low'), wait('b', 'high'), wait('b', 'high')]
    const last = wait('b', 'high')
    // A fifth is too many: one of the low ones gives way.
    expect(await waiting[1]).toBeNull()
    const order: string[] = []
    void waiting[0]?.then(() => order.push('low'))
    for (const one of [waiting[2], waiting[3], last]) void one?.then(() => order.push('high'))
    for (const leave of low) leave('answered')
    for (const one of [waiting[0], waiting[2], waiting[3], last]) (await one)?.('answered')
    expect(order.slice(0, 3).filter(name => name === 'high').length).toBeGreaterThanOrEqual(2)
    // Low requests still pass while high ones fill the limit.
    for (const leave of high) leave('answered')
    fill(upstream, 'b', 'high')
    expect(fill(upstream, 'a', 'low').length).toBeGreaterThanOrEqual(2)
  })

  it('callers of a lower class, however many, keep nobody of a higher one out', () => {
    const upstream = adaptiveConcurrency({ floor: 20, ceiling: 60 })
    for (let caller = 0; caller < 20; caller++) {
      expect(upstream.enter({ caller: `low ${caller}`, priority: 'low' })).not.toBeNull()
    }
    const others = Array.from({ length: 30 }, (_, caller) => upstream.enter({ caller: `${caller}` }))
    // All but the tenth that the lower class keeps.
    expect(others.filter(leave => leave !== null)).toHaveLength(18)
    expect(upstream.enter({ caller: 'low', priority: 'low' })).toBeNull()
  })
})
