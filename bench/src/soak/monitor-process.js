/**
 * Preloaded into the gateway. Writes every second how late its event loop was and how much of its heap is used, to a
 * file that the environment names. SIGUSR2 collects the garbage, so that the next line shows what is really held.
 */
import { appendFileSync } from 'node:fs'
import { monitorEventLoopDelay } from 'node:perf_hooks'

const RESOLUTION_MS = 5
const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
delay.enable()
process.on('SIGUSR2', () => globalThis.gc?.())
setInterval(() => {
  const lateMs = Math.max(0, delay.percentile(99) / 1e6 - RESOLUTION_MS)
  appendFileSync(String(process.env.LOOP_FILE), `${lateMs.toFixed(2)} ${process.memoryUsage().heapUsed}\n`)
  delay.reset()
}, 1_000).unref()
