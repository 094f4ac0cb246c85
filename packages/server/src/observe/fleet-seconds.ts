/** The last second of a whole fleet: what its processes have left in the store, put together. */
import type { FleetReading, ProcessReport, StatisticsStore } from 'headgate/redis'
import { addLatencies, FAILURE_KINDS, type Report } from 'headgate/statistics'

type StoreReport = Report['store']

/** Takes each report once, however often it is read. */
export class FleetSeconds {
  /** By process, the report that was seen last. */
  private seen = new Map<string, number>()

  constructor(private readonly store: StatisticsStore) {}

  async next(): Promise<{ readonly reading: FleetReading; readonly report: Report }> {
    const reading = await this.store.read()
    const fresh = reading.processes.filter(({ id, sequence }) => (this.seen.get(id) ?? 0) < sequence)
    this.seen = new Map(reading.processes.map(({ id, sequence }) => [id, sequence]))
    const violations = reading.violations
    return { reading, report: { ...merged(fresh), violations } }
  }
}

/** What several processes have counted in the same second. Rows of the same labels stay rows of their own. */
function merged(reports: readonly ProcessReport[]): Omit<Report, 'violations'> {
  return {
    durationMs: Math.max(1_000, ...reports.map(({ durationMs }) => durationMs)),
    decisions: reports.flatMap(({ decisions }) => decisions),
    shadowDenied: reports.reduce((sum, { shadowDenied }) => sum + shadowDenied, 0),
    store: mergedStores(reports.map(({ store }) => store)),
    breakers: reports.flatMap(({ breakers }) => breakers),
    violators: reports.flatMap(({ violators }) => violators),
  }
}

function mergedStores(stores: readonly StoreReport[]): StoreReport {
  const sum = (of: (store: StoreReport) => number) => stores.reduce((all, store) => all + of(store), 0)
  const counts: number[] = []
  for (const { latency } of stores) addLatencies(counts, latency.counts)
  return {
    calls: sum(({ calls }) => calls),
    checks: sum(({ checks }) => checks),
    failedCalls: sum(({ failedCalls }) => failedCalls),
    latency: { counts, sumUs: sum(({ latency }) => latency.sumUs) },
    failures: Object.fromEntries(
      FAILURE_KINDS.map(kind => [kind, sum(({ failures }) => failures[kind] ?? 0)]),
    ) as StoreReport['failures'],
    fallbackAllowed: sum(({ fallbackAllowed }) => fallbackAllowed),
    fallbackDenied: sum(({ fallbackDenied }) => fallbackDenied),
    denyCache: sum(({ denyCache }) => denyCache),
    leased: sum(({ leased }) => leased),
    leases: sum(({ leases }) => leases),
    leaseUnits: sum(({ leaseUnits }) => leaseUnits),
    rewinds: sum(({ rewinds }) => rewinds),
  }
}
