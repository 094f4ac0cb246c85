/** The charts of longer times, on a clock of their own. */
import type { RingPoint } from 'headgate/internal'
import { expect, it } from 'vitest'
import { History } from '../src/observe/history.js'
import { mergeReports } from '../src/observe/merge-reports.js'
import type { Second } from '../src/observe/second.js'

const START_MS = 1_800_000_000_000

function second(atMs: number, allowed: number): Second {
  const labels = { policy: 'api', tier: null, rule: null, source: 'memory' as const }
  const row = { ...labels, allowed, denied: 1, nearLimit: 0, latency: { counts: [], sumUs: 0 } }
  return { ...mergeReports([]), denials: [], decisions: [row], atMs }
}

/** A store that keeps what it is given, as Redis does. */
function ringStore() {
  const kept: (RingPoint & { readonly ring: string })[] = []
  return {
    kept,
    keepPoint: async ({ name: ring }: { name: string }, point: RingPoint) =>
      void kept.push({ ring, ...point }),
    readRing: async ({ name }: { name: string }) => kept.filter(({ ring }) => ring === name),
  }
}

it('a longer chart has a point a step, as long as its ring and no longer, and the step that is not over', async () => {
  let nowMs = START_MS
  const history = new History(null, () => nowMs)
  for (let index = 0; index < 8 * 3_600; index += 10) {
    nowMs = START_MS + index * 1_000
    history.add(second(nowMs, 7), true)
  }
  const { stepMs, points } = await history.read('6h')
  expect(stepMs).toBe(30_000)
  expect(points.length).toBeGreaterThanOrEqual(719)
  expect(points.length).toBeLessThanOrEqual(721)
  expect(points.every(({ allowed, denied }) => allowed === 7 && denied === 1)).toBe(true)
  expect((await history.read('7d')).points).toHaveLength(32)
  expect((await history.read('15m')).points).toHaveLength(900)
})

it('a server that has just started shows what others have kept, and keeps only what it knows of the fleet', async () => {
  let nowMs = START_MS
  const store = ringStore()
  const before = new History(store, () => nowMs)
  for (let index = 0; index < 120; index++) {
    nowMs = START_MS + index * 1_000
    before.add(second(nowMs, index < 60 ? 3 : 5), index < 90)
  }
  expect(store.kept).toMatchObject([{ ring: '6h', seconds: 30 }, { seconds: 30 }, { seconds: 30 }])
  const after = new History(store, () => nowMs)
  const { points } = await after.read('6h')
  expect(points.map(({ atMs, allowed }) => [atMs - START_MS, allowed])).toEqual([
    [0, 3],
    [30_000, 3],
    [60_000, 5],
  ])
  const broken = { ...store, readRing: () => Promise.reject(new Error('gone')) }
  expect((await new History(broken, () => nowMs).read('7d')).points).toEqual([])
})
