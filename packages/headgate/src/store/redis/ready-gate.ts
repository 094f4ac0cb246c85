import type { Timers } from '../../clock.js'

/** Lets calls through once the connection is ready. */
export interface ReadyGate {
  /** Undefined when it is ready; otherwise settles when it is, or rejects when the time is up. */
  pass(withinMs: number): Promise<void> | undefined
  /** Why what waited so long is given up, as long as nothing has been let through; null from then on. */
  problem(withinMs: number): Error | null
}

/** A connection that cannot even say what is wrong with it must not keep a call from being given up. */
function reasonOf(problem: () => string | undefined): string | undefined {
  try {
    return problem()
  } catch {
    return undefined
  }
}

/**
 * Holds calls back until the connection is ready, each no longer than it may take. One that was given up is forgotten
 * and never sent: a server that comes back after an hour must not find an hour of requests waiting for it.
 */
export function createReadyGate(
  ready: () => Promise<void>,
  problem: () => string | undefined,
  timers: Timers,
): ReadyGate {
  const waiting = new Set<() => void>()
  let open = false
  let asking = false

  function ask(): void {
    if (asking) return
    asking = true
    ready().then(
      () => {
        open = true
        for (const go of waiting) go()
        waiting.clear()
      },
      () => {
        asking = false
      },
    )
  }

  function problemNow(withinMs: number): Error | null {
    if (open) return null
    const reason = reasonOf(problem)
    return new Error(`not connected within ${withinMs} ms${reason ? `: ${reason}` : ''}`)
  }

  return {
    problem: problemNow,
    pass(withinMs) {
      if (open) return undefined
      ask()
      return new Promise((resolve, reject) => {
        const go = () => {
          callOff()
          resolve()
        }
        const callOff = timers.after(withinMs, () => {
          waiting.delete(go)
          reject(problemNow(withinMs))
        })
        waiting.add(go)
      })
    },
  }
}
