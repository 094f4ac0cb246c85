import { identifyByConfig } from 'headgate/identify'
import { mergeArrivals } from 'headgate/internal'
import { openRateLimits } from '../envoy/start-envoy.js'
import { mergeProcesses, ProcessCounts } from '../metrics/process-counts.js'
import { createVitals } from '../metrics/vitals.js'
import type { Deciding, Front, FrontOptions } from '../service/front.js'
import { createArrivalCollector } from './arrival-collector.js'
import type { FromWorker } from './messages.js'
import { type Supervisor, superviseWorkers } from './supervise.js'
import { createAllCounts } from './worker-counts.js'

/**
 * The gateway's port and Envoy's, served by `count` processes. This one starts and watches them, and answers for
 * all of them on the admin port.
 */
export function frontOfWorkers(count: number): (deciding: Deciding, options: FrontOptions) => Promise<Front> {
  return async ({ limiter, statistics }, { config, envoy, log, drain }) => {
    let supervisor: Supervisor | null = null
    const counts = createAllCounts(statistics)
    const own = new ProcessCounts()
    const collector = createArrivalCollector(worker => supervisor?.send(worker, { type: 'arrivals' }))

    function onMessage(worker: number, message: FromWorker): void {
      if (message.type === 'arrivals') collector.answered(worker, message.sample)
      if (message.type === 'second') counts.passed(message.report)
      if (message.type === 'second' || message.type === 'last') counts.heard(worker, message.counts)
    }

    let identify = identifyByConfig(config)
    await identify.ready()
    const rateLimits = envoy === undefined ? null : await openRateLimits(envoy, limiter, log)
    const workers = await superviseWorkers({
      count,
      drainTimeoutMs: drain.timeoutMs,
      log,
      onMessage,
      onEnd: counts.ended,
    }).catch(error => {
      rateLimits?.close()
      throw error
    })
    supervisor = workers
    // The workers have the connections, and tell how they are themselves.
    const vitals = createVitals({
      connections: () => 0,
      upstreams: () => [],
      answers: () => [],
      process: () => own.read(),
    })
    const passOn = () => workers.reload()
    // As without workers: in a terminal, SIGHUP means that the terminal is gone.
    if (!process.stdout.isTTY) process.on('SIGHUP', passOn)
    return {
      ...workers.listening,
      statistics: counts.statistics,
      upstreams: counts.upstreams,
      vitals,
      answers: counts.answers,
      tokens: counts.tokens,
      process: () => mergeProcesses([own.read(), ...counts.processes()]),
      setControlHere(change) {
        limiter.control.setHere(change)
        for (const worker of workers.ready()) workers.send(worker, { type: 'control', change })
      },
      async arrivals() {
        return mergeArrivals([statistics.arrivals(), ...(await collector.ask(workers.ready()))])
      },
      identify: () => identify,
      endpoints: rateLimits === null ? [] : [rateLimits.endpoint],
      envoyConfigState: () => rateLimits?.configState() ?? null,
      workers: () => ({ ready: workers.ready().length, wanted: count }),
      async apply(changed) {
        const next = identifyByConfig(changed)
        await limiter.reload(changed)
        identify = next
      },
      async stop(now) {
        process.off('SIGHUP', passOn)
        own.stop()
        await workers.stop(now)
        rateLimits?.close()
      },
    }
  }
}
