import { fork } from 'node:child_process'
import { once } from 'node:events'
import { expect, it } from 'vitest'
import type { Decision } from '../../src/decision/decision.js'
import { startRedis } from '../support/redis-process.ts'

/** More than any bound below; two million take minutes. */
const SUBJECTS = process.env.HEADGATE_LONG === '1' ? 2_000_000 : 130_000

/** What the stores keep of callers at most, with one entry that is being written. */
const MOST_ENTRIES = 100_001

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
    expect(report.fallbackAllowed).toBeGreaterThanOrEqual(MOST_ENTRIES - 1)
    expect(victimAllowed).toEqual([true, false])
    expect(report.newcomer).toMatchObject({ allowed: false, retryAfterMs: 200, reason: 'limit-exceeded' })
    expect(report.modestNewcomer.allowed).toBe(true)
    const sizes = Object.values(peaks)
    // Full, so that it is the bound that holds and not the number of callers.
    expect(Math.max(...sizes)).toBeGreaterThan(0.9 * MOST_ENTRIES)
    expect(Object.entries(peaks).filter(([, entries]) => entries > MOST_ENTRIES)).toEqual([])
  } finally {
    child.kill('SIGKILL')
    await server.stop()
  }
}, 600_000)
