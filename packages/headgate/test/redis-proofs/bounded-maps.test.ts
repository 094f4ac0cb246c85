import { fork } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import type { Decision } from '../../src/decision/decision.js'
import { startRedis } from '../support/redis-process.ts'

/** More than any bound below; two million take minutes. */
const SUBJECTS = process.env.HEADGATE_LONG === '1' ? 2_000_000 : 130_000

/**
 * Every map of the library that callers can grow, and its maximum number of entries: a generation is half of it.
 */
const BOUNDS = {
  'store/remote/check-map.js': 100_001,
  'check/bounded-map.js': 5_000,
  'store/remote/local-share.js': 100_000,
  'store/memory/table.js': 100_000,
}
/** The most entries that requests in flight may need: the store allows this many to be unanswered. */
const UNDER_WAY = 10_000

interface Report {
  readonly peaks: Readonly<Record<string, number>>
  readonly victimAllowed: readonly boolean[]
  readonly newcomer: Decision
  readonly modestNewcomer: Decision
  readonly fallbackAllowed: number
}

it(`every map stays within its bound for ${SUBJECTS} callers with Redis up and as many without it`, async () => {
  const server = await startRedis()
  const worker = new URL('./bounded-maps-worker.mjs', import.meta.url)
  const child = fork(worker, [JSON.stringify({ url: server.url, subjects: SUBJECTS })])
  try {
    await once(child, 'message')
    server.kill('SIGKILL')
    await server.exited
    child.send('gone')
    const [{ peaks, victimAllowed, ...report }] = (await once(child, 'message')) as [Report]
    // As many went into debt as may: the others were rejected more than the share, instead of freeing one of them.
    expect(report.fallbackAllowed).toBeGreaterThanOrEqual(BOUNDS['store/remote/local-share.js'])
    expect(victimAllowed).toEqual([true, false])
    expect(report.newcomer).toMatchObject({ allowed: false, retryAfterMs: 200, reason: 'limit-exceeded' })
    expect(report.modestNewcomer.allowed).toBe(true)
    for (const [file, bound] of Object.entries(BOUNDS)) {
      expect(peaks[file], file).toBeGreaterThan(0.9 * bound)
      expect(peaks[file], file).toBeLessThanOrEqual(bound)
    }
    const others = Object.entries(peaks).filter(([file]) => !(file in BOUNDS))
    expect(others.filter(([, entries]) => entries > UNDER_WAY)).toEqual([])
  } finally {
    child.kill('SIGKILL')
    await server.stop()
  }
}, 600_000)
