import { type ChildProcess, fork } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, it } from 'vitest'
import { onTime } from '../support/on-time.ts'
import { startRedis } from '../support/redis-process.ts'
import { waitUntil } from '../support/wait-until.ts'

const PROCESSES = 4
const LIMIT = 200
const WINDOW_MS = 6_000
const worker = new URL('./fleet-worker.mjs', import.meta.url)
const workers: ChildProcess[] = []

function endWorkers(): void {
  for (const child of workers.splice(0)) child.kill('SIGKILL')
}
afterEach(endWorkers)

function next<Message>(child: ChildProcess): Promise<Message> {
  return new Promise(resolve => child.once('message', message => resolve(message as Message)))
}

async function ask<Message>(child: ChildProcess, message: string): Promise<Message> {
  const answer = next<Message>(child)
  child.send(message)
  return answer
}

/** Returns what the fleet admits in one window of even load if Redis dies after part of it. */
async function admittedWhenRedisDies(afterMs: number, requestsEach: number): Promise<string[]> {
  endWorkers()
  const server = await startRedis()
  const job = JSON.stringify({ url: server.url, limit: LIMIT, windowMs: WINDOW_MS, requests: requestsEach })
  for (let index = 0; index < PROCESSES; index++) workers.push(fork(worker, [job]))
  await Promise.all(workers.map(child => next(child)))
  await waitUntil('every process knows the others', async () => {
    const counts = await Promise.all(workers.map(child => ask<{ live: number }>(child, 'count')))
    return counts.every(({ live }) => live === PROCESSES)
  })
  const reports = workers.map(child => ask<{ admitted: string[] }>(child, 'go'))
  await sleep(afterMs)
  server.kill('SIGKILL')
  const admitted = (await Promise.all(reports)).flatMap(report => report.admitted)
  await server.stop()
  return admitted
}

it(
  'four processes together admit about one limit when Redis dies in the middle of a window',
  () =>
    onTime(async () => {
      const admitted = await admittedWhenRedisDies(WINDOW_MS / 2, Math.round((1.2 * LIMIT) / PROCESSES))
      expect(new Set(admitted)).toEqual(new Set(['redis', 'local']))
      expect(admitted.length).toBeLessThanOrEqual(1.25 * LIMIT)
      expect(admitted.length).toBeGreaterThan(0.5 * LIMIT)
    }),
  120_000,
)

it(
  'four processes together admit about one limit when Redis is dead before anybody asked',
  () =>
    onTime(async () => {
      const admitted = await admittedWhenRedisDies(0, LIMIT)
      expect(admitted.length).toBeLessThanOrEqual(1.25 * LIMIT)
      expect(admitted.length).toBeGreaterThan(0.5 * LIMIT)
    }),
  120_000,
)
