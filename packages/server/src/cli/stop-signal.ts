const SIGNALS = ['SIGINT', 'SIGTERM'] as const
/** A terminal and npm each send one, at nearly the same time: that is one wish to stop. */
const SAME_WISH_MS = 250

/** The wish to stop, by Ctrl-C or SIGTERM. */
export interface StopSignals {
  readonly first: Promise<NodeJS.Signals>
  /** Aborted by another signal later: what is in flight is not waited for. */
  readonly second: AbortSignal
}

export function stopSignals(): StopSignals {
  const second = new AbortController()
  let atMs: number | null = null
  const first = new Promise<NodeJS.Signals>(resolve => {
    for (const signal of SIGNALS) {
      process.on(signal, () => {
        if (atMs === null) {
          atMs = performance.now()
          resolve(signal)
        } else if (performance.now() - atMs > SAME_WISH_MS) second.abort()
      })
    }
  })
  return { first, second: second.signal }
}
