/**
 * Four processes whose Redis comes and goes, and finally stays away (for one of them from the start): their shares
 * never add up to more than the limit.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { seededRandom } from '../../src/testing/seeded-random.js'
import { type RedisProcess, startRedis } from '../support/redis-process.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { waitUntil } from '../support/wait-until.ts'

const LONG = process.env.HEADGATE_LONG === '1'
const RUNS = LONG ? 20 : 1
const COMES_AND_GOES_MS = LONG ? 12_000 : 3_000
const GONE_MS = 2_500
const PROCESSES = 4
const LIMIT = 100
const WINDOW_MS = 1_000
/** How much later than its decision an admission may be recorded; windows are shortened by it. */
const LATE_MS = 100

interface Admission {
  readonly atMs: number
  readonly source: string
}

const workers: ChildProcess[] = []
const cleanUps: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const child of workers.splice(0)) child.kill('SIGKILL')
  for (const cleanUp of cleanUps.splice(0)) await cleanUp()
})

async function ask<Message>(child: ChildProcess, message: string): Promise<Message> {
  child.send(message)
  const [answer] = (await once(child, 'message')) as [Message]
  return answer
}

/** Freezes Redis for 60 to 100 ms every one to two seconds. */
async function comeAndGo(server: RedisProcess, seed: number): Promise<void> {
  const random = seededRandom(seed)
  const endMs = performance.now() + COMES_AND_GOES_MS
  while (performance.now() < endMs) {
    await sleep(1_000 + 1_000 * random())
    server.kill('SIGSTOP')
    await sleep(60 + 40 * random())
    server.kill('SIGCONT')
  }
}

/** Waits until every process counts `expected` live ones. */
async function waitForCount(children: readonly ChildProcess[], expected: number): Promise<void> {
  await waitUntil(`they count ${expected}`, async () => {
    const counts = await Promise.all(children.map(child => ask<{ live: number }>(child, 'count')))
    return counts.every(({ live }) => live === expected)
  })
}

/** Returns the most admissions in any window. */
function worstWindow(admissions: readonly Admission[]): number {
  const times = admissions.map(({ atMs }) => atMs).toSorted((one, other) => one - other)
  let worst = 0
  let first = 0
  for (const [index, atMs] of times.entries()) {
    while (atMs - (times[first] as number) >= WINDOW_MS - LATE_MS) first++
    worst = Math.max(worst, index - first + 1)
  }
  return worst
}

it.each(Array.from({ length: RUNS }, (_, index) => index + 1))(
  'four processes admit no more than the limit when a Redis that came and went is gone, run %i',
  async seed => {
    const server = await startRedis()
    cleanUps.push(server.stop)
    const proxy = await startTcpProxy(server)
    cleanUps.push(proxy.close)
    for (let index = 0; index < PROCESSES; index++) {
      const url = index === 0 ? `redis://127.0.0.1:${proxy.port}` : server.url
      const job = JSON.stringify({ url, limit: LIMIT, windowMs: WINDOW_MS, everyMs: 10 })
      workers.push(fork(new URL('./shares-worker.mjs', import.meta.url), [job]))
    }
    await Promise.all(workers.map(child => once(child, 'message')))
    await waitForCount(workers, PROCESSES)
    for (const child of workers) child.send('go')
    await comeAndGo(server, seed)
    proxy.blackhole()
    await waitForCount(workers.slice(1), PROCESSES - 1)
    server.kill('SIGKILL')
    await server.exited
    const goneAtMs = performance.timeOrigin + performance.now()
    await sleep(GONE_MS)
    const reports = await Promise.all(
      workers.map(child => ask<{ admitted: Admission[]; sharedAmong: number }>(child, 'stop')),
    )
    expect(reports.map(({ sharedAmong }) => sharedAmong)).toEqual(Array(PROCESSES).fill(PROCESSES))
    const admissions = reports.flatMap(({ admitted }) => admitted)
    const alone = admissions.filter(({ atMs }) => atMs > goneAtMs + LATE_MS)
    expect(new Set(alone.map(({ source }) => source))).toEqual(new Set(['local']))
    const [deep, anywhere] = [worstWindow(alone), worstWindow(admissions)]
    console.info(`worst window without Redis ${deep}, anywhere ${anywhere}, of ${LIMIT}`)
    expect(deep).toBeGreaterThan(0.5 * LIMIT)
    expect(deep).toBeLessThanOrEqual(LIMIT)
    expect(anywhere).toBeLessThanOrEqual(LIMIT + LIMIT / PROCESSES)
  },
  60_000,
)
