/**
 * The short part of the fault report: its counts must be right on any machine. Its times are in the report that
 * `npm run proof -- faults` writes.
 */
import { beforeAll, describe, expect, it, vi } from 'vitest'
// @ts-expect-error: plain JavaScript, so that the report runs without a build of the tests
import * as failover from './failover.mjs'
// @ts-expect-error
import { eviction } from './memory.mjs'
// @ts-expect-error
import { resharding } from './resharding.mjs'

interface Row {
  readonly figure: string
  readonly value: string
  readonly target: string
  readonly met: boolean
  readonly timing?: boolean
}

beforeAll(() => {
  vi.spyOn(console, 'warn').mockImplementation(() => {})
})

async function expectCountsMet(rows: Promise<Row[]>): Promise<void> {
  const counts = (await rows).filter(({ timing, target }) => timing !== true && target !== '')
  expect(counts.length).toBeGreaterThan(0)
  expect(counts.filter(({ met }) => !met)).toEqual([])
}

describe('the fault report, in short', { timeout: 120_000 }, () => {
  it('every request is decided while a primary of a cluster is killed, another frozen', () =>
    expectCountsMet(failover.clusterFailover('node-redis', { rounds: 2 })))
  it('every request is decided while the primary behind sentinels is frozen', () =>
    expectCountsMet(failover.sentinelFailover('node-redis', { signals: ['SIGSTOP'] })))
  it('every request is decided while a failover loses writes', () =>
    expectCountsMet(failover.lostWrites('ioredis')))
  it('every request is decided while slots move', () =>
    expectCountsMet(resharding('node-redis', { rounds: 1, slots: 500 })))
  it('every request is decided while memory is short, with every eviction policy', () =>
    expectCountsMet(eviction('ioredis')))
})
