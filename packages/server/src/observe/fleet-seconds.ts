/** The last second of a whole fleet, merged from the reports of its processes in the store. */
import type { FleetReading, ProcessReport, StatisticsStore } from 'headgate/redis'
import type { Report } from 'headgate/statistics'
import { mergeReports } from './merge-reports.js'

const UNSAID = { unlistedAtMost: 0, sampledOneIn: 1 }

/** Takes each report once, however often it is read. */
export class FleetSeconds {
  /** By process, the last report seen. */
  private seen = new Map<string, number>()

  constructor(private readonly store: StatisticsStore) {}

  async next(): Promise<{ readonly reading: FleetReading; readonly report: Report }> {
    const reading = await this.store.read()
    const fresh = reading.processes.filter(({ id, sequence }) => (this.seen.get(id) ?? 0) < sequence)
    this.seen = new Map(reading.processes.map(({ id, sequence }) => [id, sequence]))
    const violations = reading.violations
    return { reading, report: { ...mergeReports(fresh.map(complete)), violations } }
  }
}

/** A report of an earlier version says less. */
function complete(report: ProcessReport): ProcessReport {
  return { ...UNSAID, ...report }
}
