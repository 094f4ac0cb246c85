/** What a server takes of its machine: processor time, memory, and how late its event loop runs. */
import { performance } from 'node:perf_hooks'
import type { Family } from 'headgate/internal'

/** Figures of a process, as plain data. */
export interface ProcessReading {
  readonly startedAtMs: number
  readonly cpuSeconds: number
  readonly memoryBytes: number
  /** The time its event loop was not idle. */
  readonly activeSeconds: number
  /** How often it was late, by how much: one more than there are bounds. */
  readonly lagBuckets: readonly number[]
  readonly lagSeconds: number
}

export const LAG_BOUNDS_SECONDS: readonly number[] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]
const LOOK_EVERY_MS = 100

/** Measures this process until it is stopped. */
export class ProcessCounts {
  private readonly lagBuckets = [...LAG_BOUNDS_SECONDS.map(() => 0), 0]
  private lagSeconds = 0
  private lastMs = performance.now()
  private readonly timer = setInterval(() => this.look(), LOOK_EVERY_MS).unref()

  read(): ProcessReading {
    const { user, system } = process.cpuUsage()
    return {
      startedAtMs: performance.timeOrigin,
      cpuSeconds: (user + system) / 1_000_000,
      memoryBytes: process.memoryUsage.rss(),
      activeSeconds: performance.eventLoopUtilization().active / 1_000,
      lagBuckets: [...this.lagBuckets],
      lagSeconds: this.lagSeconds,
    }
  }

  stop(): void {
    clearInterval(this.timer)
  }

  private look(): void {
    const nowMs = performance.now()
    const lag = Math.max(0, nowMs - this.lastMs - LOOK_EVERY_MS) / 1_000
    this.lastMs = nowMs
    const below = LAG_BOUNDS_SECONDS.findIndex(bound => lag <= bound)
    const bucket = below === -1 ? LAG_BOUNDS_SECONDS.length : below
    this.lagBuckets[bucket] = (this.lagBuckets[bucket] as number) + 1
    this.lagSeconds += lag
  }
}

/** Sums the figures of a server's processes. A process that is gone keeps what it counted, and has no memory. */
export function mergeProcesses(readings: readonly ProcessReading[]): ProcessReading {
  const sum = (of: (reading: ProcessReading) => number) => readings.reduce((all, one) => all + of(one), 0)
  return {
    startedAtMs: Math.min(...readings.map(({ startedAtMs }) => startedAtMs)),
    cpuSeconds: sum(({ cpuSeconds }) => cpuSeconds),
    memoryBytes: sum(({ memoryBytes }) => memoryBytes),
    activeSeconds: sum(({ activeSeconds }) => activeSeconds),
    lagBuckets: [...LAG_BOUNDS_SECONDS, 0].map((_, bucket) =>
      sum(({ lagBuckets }) => lagBuckets[bucket] ?? 0),
    ),
    lagSeconds: sum(({ lagSeconds }) => lagSeconds),
  }
}

export function processFamilies(reading: ProcessReading): readonly Family[] {
  const { startedAtMs, cpuSeconds, memoryBytes, activeSeconds, lagBuckets, lagSeconds } = reading
  const one = (name: string, type: 'counter' | 'gauge', help: string, value: number): Family => ({
    name,
    type,
    labels: [],
    help,
    samples: [{ labels: {}, value }],
  })
  return [
    one('process_cpu_seconds_total', 'counter', 'Processor time of the server and its workers.', cpuSeconds),
    one('process_resident_memory_bytes', 'gauge', 'Memory of the server and its workers.', memoryBytes),
    one('process_start_time_seconds', 'gauge', 'When the server began, as Unix time.', startedAtMs / 1_000),
    one(
      'rate_limit_event_loop_active_seconds_total',
      'counter',
      'Time in which event loops were not idle; a rate near the number of processes means they are full.',
      activeSeconds,
    ),
    {
      name: 'rate_limit_event_loop_lag_seconds',
      type: 'histogram',
      labels: [],
      help: 'How late event loops ran a timer of 100 ms.',
      samples: [
        {
          labels: {},
          value: {
            boundsSeconds: LAG_BOUNDS_SECONDS,
            counts: lagBuckets,
            sumSeconds: lagSeconds,
            exemplars: [],
          },
        },
      ],
    },
  ]
}
