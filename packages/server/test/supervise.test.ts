/** The process that watches over workers survives whatever happens to them. */
import cluster from 'node:cluster'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, it } from 'vitest'
import { type Supervisor, superviseWorkers } from '../src/workers/supervise.js'

const exec = fileURLToPath(new URL('./support/ending-worker.mjs', import.meta.url))
let supervisor: Supervisor | undefined
afterEach(() => supervisor?.stop())

it('a message to a worker that is just ending is lost with it, and another worker takes its place', async () => {
  cluster.setupPrimary({ exec, execArgv: [], cwd: tmpdir() })
  const lines: string[] = []
  let ended = 0
  const supervised = await superviseWorkers({
    count: 1,
    drainTimeoutMs: 1_000,
    log: line => lines.push(line),
    onMessage: () => {},
    onEnd: () => void ended++,
  })
  supervisor = supervised
  await new Promise<void>(resolve => {
    const speak = () => {
      if (ended > 0) return resolve()
      supervised.send(1, { type: 'arrivals' })
      setImmediate(speak)
    }
    speak()
  })
  await expect.poll(() => lines.at(-1)).toBe('worker 1 takes requests again')
})

it('a worker that cannot be started is reported by name', async () => {
  cluster.setupPrimary({ exec, execArgv: [], cwd: join(tmpdir(), 'headgate-no-such-folder') })
  const supervised = superviseWorkers({
    count: 1,
    drainTimeoutMs: 1_000,
    log: () => {},
    onMessage: () => {},
    onEnd: () => {},
  })
  await expect(supervised).rejects.toThrow('worker 1 ended with ENOENT before it listened')
})
