import { fleetRecords } from 'headgate/internal'
import { startFront } from '../service/front.js'
import { createDeciding } from '../service/service.js'
import type { FromWorker, ToWorker, WorkerCounts } from '../workers/messages.js'
import { NUMBER_VARIABLE } from '../workers/supervise.js'
import { openParts } from './open-parts.js'
import type { ServeFlags } from './serve.js'
import { stopSignals } from './stop-signal.js'
import type { Terminal } from './terminal.js'

/** Serves the ports that all workers share, and reports to the process that started it, until a signal comes. */
export async function serveAsWorker(flags: ServeFlags, terminal: Terminal): Promise<void> {
  const { first, second } = stopSignals()
  process.stdout.removeAllListeners('error').on('error', () => {})
  const { live, options } = await openParts(flags, terminal, Number(process.env[NUMBER_VARIABLE]))
  const deciding = createDeciding(options)
  const { limiter, statistics } = deciding
  try {
    const front = await startFront(deciding, options)
    live.onChange(front.apply)
    const counts = (): WorkerCounts => ({
      statistics: statistics.read(),
      upstreams: front.upstreams(),
      answers: front.answers(),
      tokens: front.tokens(),
      process: front.process(),
    })
    const fleet = fleetRecords(options.store)?.statistics
    statistics.onSecond(() => fleet?.setNote({ vitals: front.vitals() }))
    statistics.onSecond(report => void tell({ type: 'second', report, counts: counts() }))
    process.on('message', (message: ToWorker) => {
      const { type } = message
      if (type === 'arrivals') void tell({ type, sample: statistics.arrivals() })
      if (type === 'control') limiter.control.setHere(message.change)
    })
    const { gatewayUrl, grpcAddress, upstreamUrl } = front
    await tell({ type: 'ready', gatewayUrl, grpcAddress, upstreamUrl })
    await first
    await tell({ type: 'draining' })
    await front.stop(second)
    await tell({ type: 'last', counts: counts() })
  } finally {
    await limiter.close()
    live.close()
    // The channel to the parent process would keep this one alive.
    process.disconnect()
  }
}

/** Resolves when the message has been sent; does nothing if the parent is gone. */
function tell(message: FromWorker): Promise<void> {
  return new Promise(resolve => {
    if (process.connected) process.send?.(message, () => resolve())
    else resolve()
  })
}
