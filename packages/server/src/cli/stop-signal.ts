const SIGNALS = ['SIGINT', 'SIGTERM'] as const

/**
 * Waits for Ctrl-C or SIGTERM. Later signals change nothing: a terminal and npm each send one, and stopping is
 * bounded anyway.
 */
export function stopSignal(): Promise<NodeJS.Signals> {
  return new Promise(resolve => {
    for (const signal of SIGNALS) process.on(signal, resolve)
  })
}
