import type { Clock, Timers } from '../../time/clock.js'
import type { RedisConnection } from './connection.js'
import type { RunScript } from './script-runner.js'

/** A connection younger than this that leads to a replica is not replaced for the sake of one call. */
export const YOUNG_MS = 1_000

/** Redis puts its own `ERR` before an error that a script passes on. */
const READ_ONLY = /^(?:ERR )?READONLY /

/**
 * Whether it is the error of a script that tried to write on a replica. It comes before anything is written:
 * nothing ran.
 */
export function isReadOnly(error: unknown): boolean {
  return error instanceof Error && READ_ONLY.test(error.message)
}

interface Timing {
  readonly deadlineMs: number
  readonly clock: Clock
  readonly timers: Timers
}

/**
 * Sends a call once more if it reached a primary that has become a replica, as after a failover behind one address,
 * as soon as the new connection is there and only within its deadline. The connection replaces itself when it gets
 * the reply.
 */
export function retryReadOnly(
  run: RunScript,
  connection: RedisConnection,
  { deadlineMs, clock, timers }: Timing,
): RunScript {
  if (connection.onConnected === undefined) return run
  const waiting = new Set<() => void>()
  const nowMs = (): number => clock.nowUs() / 1000
  let connectedAtMs = Number.NEGATIVE_INFINITY
  connection.onConnected(() => {
    connectedAtMs = nowMs()
    for (const go of waiting) go()
    waiting.clear()
  })

  /** Whether there is a new connection in time. */
  function reconnected(sentAtMs: number): Promise<boolean> {
    if (connectedAtMs > sentAtMs) return Promise.resolve(true)
    if (sentAtMs - connectedAtMs < YOUNG_MS) return Promise.resolve(false)
    return new Promise(resolve => {
      const go = (): void => {
        callOff()
        resolve(true)
      }
      const callOff = timers.after(Math.max(1, sentAtMs + deadlineMs - nowMs()), () => {
        waiting.delete(go)
        resolve(false)
      })
      waiting.add(go)
    })
  }

  return async (script, keys, args) => {
    const sentAtMs = nowMs()
    try {
      return await run(script, keys, args)
    } catch (error) {
      if (!isReadOnly(error) || !(await reconnected(sentAtMs))) throw error
      if (nowMs() - sentAtMs >= deadlineMs) throw error
    }
    return run(script, keys, args)
  }
}
