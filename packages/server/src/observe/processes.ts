import type { FleetReading, ProcessStatistics } from 'headgate/internal'

/** The processes that share a store, by service. */
export interface Processes {
  readonly live: number
  readonly services: readonly {
    readonly service: string
    readonly live: number
    readonly processes: readonly ShownProcess[]
  }[]
}

interface ShownProcess {
  readonly id: string
  readonly startedAtMs: number
  readonly version: string
  readonly configVersion: string | null
  readonly requestsPerSecond: number
  readonly store: 'up' | 'down'
  readonly isThis: boolean
}

interface Own {
  readonly id: string
  readonly read: ProcessStatistics
  readonly service: string
  readonly nowMs: number
}

const MAX_SHOWN = 100

/** If no fleet is known, this process is alone. */
export function processesOf(reading: FleetReading | null, own: Own): Processes {
  const shown = reading === null ? [ownProcess(own)] : reading.processes.map(one => heardProcess(one, own.id))
  const services = new Map<string, ShownProcess[]>()
  for (const { service, ...one } of shown) services.set(service, [...(services.get(service) ?? []), one])
  return {
    live: shown.length,
    services: [...services].map(([service, processes]) => ({
      service,
      live: processes.length,
      processes: processes.slice(0, MAX_SHOWN),
    })),
  }
}

type OfService = ShownProcess & { readonly service: string }

function heardProcess(report: FleetReading['processes'][number], own: string): OfService {
  const { id, service, startedAtMs, version, configVersion, decisions, durationMs, breakers } = report
  const requests = decisions.reduce((sum, { allowed, denied }) => sum + allowed + denied, 0)
  return {
    id,
    service,
    startedAtMs,
    version,
    configVersion,
    isThis: id === own,
    requestsPerSecond: (requests * 1000) / Math.max(1, durationMs),
    store: breakers.some(({ state }) => state !== 'closed') ? 'down' : 'up',
  }
}

function ownProcess({ id, read, service, nowMs }: Own): OfService {
  const { startedAtMs, decisions, limiters, store } = read
  const requests = decisions.reduce((sum, { allowed, denied }) => sum + allowed + denied, 0)
  return {
    id,
    service,
    startedAtMs,
    version: '',
    configVersion: limiters[0]?.configVersion ?? null,
    isThis: true,
    requestsPerSecond: (requests * 1000) / Math.max(1_000, nowMs - startedAtMs),
    store: store.breakers.some(({ state }) => state !== 'closed') ? 'down' : 'up',
  }
}
