/** Starts the workers of a server, and replaces each that ends. */
import cluster, { type Worker } from 'node:cluster'
import type { WriteLine } from '../log/write-line.js'
import type { FromWorker, Listening, ToWorker } from './messages.js'

/** The variable with the number of a worker; unset if the process is not one. */
export const NUMBER_VARIABLE = 'HEADGATE_WORKER_NUMBER'

export interface SuperviseOptions {
  readonly count: number
  /** How long a worker may take to finish requests in flight. */
  readonly drainTimeoutMs: number
  readonly log: WriteLine
  /** Called for every message; `worker` is its number, from 1. */
  onMessage(worker: number, message: FromWorker): void
  onEnd(worker: number): void
}

export interface Supervisor {
  /** Where all of them listen. */
  readonly listening: Listening
  /** Returns the numbers of those that accept requests. */
  ready(): readonly number[]
  send(worker: number, message: ToWorker): void
  /** Has all of them read their files again. */
  reload(): void
  /** Has all of them finish requests in flight and end; by force when the time is over, or at `now`. */
  stop(now?: AbortSignal): Promise<void>
}

interface Slot {
  readonly number: number
  worker: Worker | null
  isReady: boolean
  startedAtMs: number
  endedInARow: number
  restart: NodeJS.Timeout | undefined
}

/** A worker that has run this long was healthy: when it ends, the next is started at once. */
const WELL_AFTER_MS = 30_000
/** What a worker needs beside its drain timeout, or the second signal, to end by itself. */
const END_WITHIN_MS = 500

/** Resolves when all of them are ready; if one ends before, rejects and ends the others. */
export async function superviseWorkers(options: SuperviseOptions): Promise<Supervisor> {
  const { count, log, onMessage, onEnd } = options
  const slots = Array.from({ length: count }, (_, index): Slot => {
    return {
      number: index + 1,
      worker: null,
      isReady: false,
      startedAtMs: 0,
      endedInARow: 0,
      restart: undefined,
    }
  })
  let stopping = false
  let hasStarted = false
  cluster.setupPrimary({ serialization: 'advanced' })

  /** Resolves when it is ready; rejects if it ends before. */
  function start(slot: Slot): Promise<Listening> {
    const worker = cluster.fork({ [NUMBER_VARIABLE]: String(slot.number) })
    slot.worker = worker
    slot.startedAtMs = performance.now()
    return new Promise((resolve, reject) => {
      worker.on('message', (message: FromWorker) => {
        if (message.type === 'ready') {
          slot.isReady = true
          resolve(message)
        } else if (message.type === 'draining') slot.isReady = false
        onMessage(slot.number, message)
      })
      const end = (how: string) => {
        reject(new Error(`worker ${slot.number} ended ${how} before it listened`))
        ended(slot, how)
      }
      worker.once('exit', (code, signal) =>
        end(signal === null || signal === '' ? `with code ${code}` : `by ${signal}`),
      )
      worker.on('error', ({ code, message }: NodeJS.ErrnoException) => {
        // A message to a worker that is ending is lost with it. One that never ran has no exit event.
        if (worker.process.pid === undefined) end(`with ${code ?? message}`)
      })
    })
  }

  function ended(slot: Slot, how: string): void {
    slot.worker = null
    slot.isReady = false
    onEnd(slot.number)
    if (stopping || !hasStarted) return
    const wasWell = performance.now() - slot.startedAtMs > WELL_AFTER_MS
    slot.endedInARow = wasWell ? 1 : slot.endedInARow + 1
    const delayMs = restartDelayMs(slot.endedInARow)
    const consequence = `another is started in ${delayMs} ms`
    const cause = `it ended ${how}`
    log(`worker ${slot.number} ended ${how}; ${consequence}`, { level: 'error', cause, consequence })
    slot.restart = setTimeout(() => {
      start(slot).then(
        () => log(`worker ${slot.number} takes requests again`),
        // Its end is reported, and leads to the next.
        () => {},
      )
    }, delayMs)
  }

  async function stop(now?: AbortSignal): Promise<void> {
    stopping = true
    for (const { restart } of slots) clearTimeout(restart)
    const live = slots.flatMap(({ worker }) => (worker === null ? [] : [worker]))
    const ends = live.map(worker => new Promise(resolve => worker.once('exit', resolve)))
    for (const worker of live) worker.process.kill('SIGTERM')
    const kill = () => {
      for (const worker of live) worker.process.kill('SIGKILL')
    }
    const hurry = () => {
      for (const worker of live) worker.process.kill('SIGTERM')
      clearTimeout(force)
      force = setTimeout(kill, END_WITHIN_MS)
    }
    let force = setTimeout(kill, options.drainTimeoutMs + END_WITHIN_MS)
    now?.addEventListener('abort', hurry)
    await Promise.all(ends)
    now?.removeEventListener('abort', hurry)
    clearTimeout(force)
  }

  try {
    // Only the first, so that a problem that keeps workers from starting is reported once.
    const [first, ...others] = slots as [Slot, ...Slot[]]
    const listening = await start(first)
    await Promise.all(others.map(start))
    hasStarted = true
    return {
      listening,
      ready: () => slots.filter(({ isReady }) => isReady).map(({ number }) => number),
      send: (number, message) => slots[number - 1]?.worker?.send(message),
      reload() {
        for (const { worker, isReady } of slots) if (isReady) worker?.process.kill('SIGHUP')
      },
      stop,
    }
  } catch (error) {
    await stop()
    throw error
  }
}

const FIRST_MS = 100
const LONGEST_MS = 10_000

/** Returns how long to wait before a worker is replaced: longer each time it happens in a row. */
export function restartDelayMs(endedInARow: number): number {
  return Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.max(0, endedInARow - 1))
}
