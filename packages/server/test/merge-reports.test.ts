import { mergeArrivals, type ProcessStatistics } from 'headgate/internal'
import { createStatistics } from 'headgate/metrics'
import { expect, it } from 'vitest'
import { countsAlone, mergeStatistics } from '../src/observe/merge-reports.js'
import { restartDelayMs } from '../src/workers/supervise.js'

const empty = createStatistics().read()
const latency = (...counts: number[]) => ({ counts, sumUs: counts.length })
const tally = (policy: string, allowed: number) => ({
  policy,
  tier: null,
  rule: null,
  source: 'redis' as const,
  allowed,
  denied: 1,
  nearLimit: 2,
  latency: latency(allowed, 1),
  waited: policy === 'api' ? latency(1, allowed) : null,
})
const limiter = (wouldDeny: number) => ({
  control: { enabled: true, multiplier: 1 },
  overrides: 3,
  configLoadedAtMs: 1,
  configVersion: 'abcd1234',
  reloads: 2,
  shadow: { api: { wouldAllow: 1, wouldDeny } },
  candidates: {},
  bans: { api: 1 },
  shadowDivergence: 1,
  faults: 1,
  limits: [],
})
const one: ProcessStatistics = {
  ...empty,
  decisions: [tally('api', 5), tally('login', 1)],
  remaining: { global: 7, route: null },
  store: { ...empty.store, calls: 4, breakers: [{ node: 'a', state: 'closed', sinceMs: 1 }] },
  limiters: [limiter(4)],
}
const other: ProcessStatistics = {
  ...empty,
  decisions: [tally('api', 6)],
  remaining: { global: 3, route: 9 },
  store: { ...empty.store, calls: 2, breakers: [{ node: 'a', state: 'open', sinceMs: 2 }] },
  limiters: [limiter(5)],
}

it('counts of processes are added, by their labels', () => {
  const { decisions, store, limiters, remaining } = mergeStatistics([one, other])
  expect(decisions.map(({ policy, allowed, denied }) => [policy, allowed, denied])).toEqual([
    ['api', 11, 2],
    ['login', 1, 1],
  ])
  expect(decisions[0]?.latency).toEqual({ counts: [11, 2], sumUs: 4 })
  expect(decisions.map(({ waited }) => waited)).toEqual([{ counts: [2, 11], sumUs: 4 }, null])
  expect(store.calls).toBe(6)
  expect(limiters).toEqual([
    {
      ...limiter(9),
      shadow: { api: { wouldAllow: 2, wouldDeny: 9 } },
      bans: { api: 2 },
      shadowDivergence: 2,
      faults: 2,
    },
  ])
  expect(remaining).toEqual({ global: 3, route: 9 })
})

it('a node that one of them cannot reach is reported, whichever is asked first', () => {
  for (const all of [[one, other] as const, [other, one] as const]) {
    expect(mergeStatistics(all).store.breakers).toEqual(other.store.breakers)
  }
})

it('a process that is gone leaves its counts behind, but no current state', () => {
  const { decisions, remaining, store } = mergeStatistics([one, countsAlone(other)])
  expect(decisions[0]?.allowed).toBe(11)
  expect(remaining).toEqual({ global: 7, route: null })
  expect(store.breakers).toEqual(one.store.breakers)
})

it('samples of arrivals are those of the subjects that every process kept', () => {
  const arrival = (subject: string, atMs: number) => ({
    subject,
    policy: 'api',
    tier: null,
    atMs,
    cost: 1,
    denied: false,
    request: null,
  })
  const subjects = Array.from({ length: 64 }, (_, index) => `user:${index}`)
  const whole = { share: 1, arrivals: subjects.map((subject, index) => arrival(subject, index)) }
  const { arrivals, share } = mergeArrivals([whole, { share: 0.5, arrivals: [] }, whole])
  expect(share).toBe(0.5)
  const kept = new Set(arrivals.map(({ subject }) => subject))
  expect(kept.size).toBeGreaterThan(16)
  expect(kept.size).toBeLessThan(48)
  expect(arrivals).toHaveLength(2 * kept.size)
  const times = arrivals.map(({ atMs }) => atMs)
  expect(times).toEqual(times.toSorted((a, b) => a - b))
})

it('a worker that keeps ending is restarted after ever longer delays, up to ten seconds', () => {
  expect([1, 2, 3, 7, 8, 99].map(restartDelayMs)).toEqual([100, 200, 400, 6_400, 10_000, 10_000])
})
