import type { Clock, Timers } from '../../time/clock.js'
import type { FirstConnection } from '../remote/remote.js'
import { storeError } from './store-error.js'

export interface FirstConnectionOptions {
  ready(): Promise<void>
  /** Returns the last error while connecting. */
  problem(): string | undefined
  readonly deadlineMs: number
  /** How long calls wait for it, from now. */
  readonly connectTimeoutMs: number
  readonly clock: Clock
  readonly timers: Timers
}

/** A call that waits. */
interface Held {
  go(): void
  giveUp(): void
}

/** How many calls may wait at once; more are not worth their memory. */
const MAX_WAITING = 10_000

/**
 * Holds calls back until there has been a connection. A new store is connecting, not failing: its first requests
 * wait for that, as long as nothing has gone wrong, and at most for `connectTimeoutMs` from the start. A call that
 * was given up is dropped and never sent: a server that comes back after an hour must not find an hour of requests
 * waiting.
 */
export function createFirstConnection(options: FirstConnectionOptions): FirstConnection {
  const { deadlineMs, timers } = options
  const nowMs = (): number => options.clock.nowUs() / 1000
  const waiting = new Set<Held>()
  const startedAtMs = nowMs()
  let untilMs = startedAtMs + options.connectTimeoutMs
  let connected = false
  let listening = false

  function listen(): void {
    if (listening) return
    listening = true
    options.ready().then(
      () => {
        connected = true
        for (const held of [...waiting]) held.go()
      },
      () => {
        listening = false
      },
    )
  }

  function isWorthWaiting(): boolean {
    return nowMs() < untilMs && reasonOf(options.problem) === undefined
  }

  function notConnected(): Error {
    const reason = reasonOf(options.problem)
    const sinceMs = Math.round(nowMs() - startedAtMs)
    return storeError(new Error(`not connected ${sinceMs} ms after the start${reason ? `: ${reason}` : ''}`))
  }

  /** Checks every `everyMs` whether waiting is still worthwhile. */
  function hold(everyMs: number, isWorthIt: () => boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      let cancel = (): void => {}
      const end = (): void => {
        cancel()
        waiting.delete(held)
      }
      const held: Held = {
        go() {
          end()
          resolve()
        },
        giveUp() {
          end()
          reject(notConnected())
        },
      }
      const wait = (): void => {
        cancel = timers.after(everyMs, () => (isWorthIt() ? wait() : held.giveUp()))
      }
      waiting.add(held)
      wait()
    })
  }

  listen()
  return {
    get untilMs() {
      return connected ? 0 : untilMs
    },
    wait(withinMs) {
      if (connected) return undefined
      listen()
      if (withinMs !== undefined) return hold(withinMs, () => false)
      if (nowMs() >= untilMs || waiting.size >= MAX_WAITING) return Promise.reject(notConnected())
      return hold(deadlineMs, isWorthWaiting)
    },
    hurry() {
      untilMs = 0
    },
    close() {
      for (const held of [...waiting]) held.giveUp()
    },
  }
}

/** A connection that cannot report its problem must not keep a call from being given up. */
function reasonOf(problem: () => string | undefined): string | undefined {
  try {
    return problem()
  } catch {
    return undefined
  }
}
