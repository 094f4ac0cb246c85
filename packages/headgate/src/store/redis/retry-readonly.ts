import type { Clock, Timers } from '../../time/clock.js'
import type { RedisConnection } from './connection.js'
import type { RunScript } from './script-runner.js'

/** A connection younger than this that says it leads to a replica is not replaced for the sake of one call. */
export const YOUNG_MS = 1_000

/** An error that a script hands on gets Redis' own `ERR` before it. */
const READ_ONLY = /^(?:ERR )?READONLY /

/** The error of a script that was to write on a replica. It comes before anything is written: nothing ran. */
export function isReadOnly(error: unknown): boolean {
  return error instanceof Error && READ_ONLY.test(error.message)
}

interface Timing {
  readonly deadlineMs: number
  readonly clock: Clock
  readonly timers: Timers
}

/**
 * Sends a call once more when it reached a primary that has become a replica, as after a failover behind one address,
 * as soon as the new connection is there and only within its deadline: what was given up by then is not sent. The
 * connection replaces itself when it hears the reply.
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

  /** Whether there is another connection than the one that was used, in time. */
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
